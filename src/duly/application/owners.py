"""Whose a job is: its run's owner's, its template's or its group's; one that has none of these is for operators."""

from duly.domain.ids import JobId, JobKey, Owner
from duly.domain.jobs import FinishedJob, Job, KeyOfAnother, UnknownJob
from duly.domain.sessions import ClaimedJob
from duly.ports.storage import Transaction


async def job_known(tx: Transaction, job_id: JobId, owner: str | None) -> Job | FinishedJob:
    """Somebody else's job does not exist."""
    job = await tx.jobs.get(job_id)
    if job is None or (owner is not None and await owner_of_job(tx, job) != owner):
        raise UnknownJob(job_id)
    return job


async def holder_of_own(tx: Transaction, key: JobKey | None, owner: str) -> JobId | None:
    """The job whose place a put under a key takes, which must not be somebody else's."""
    holder = None if key is None else await tx.jobs.holder_of(key)
    if key is None or holder is None:
        return None
    if await owner_of_job(tx, holder) != owner:
        raise KeyOfAnother(key)
    return holder.id


async def owner_of_job(tx: Transaction, job: Job | FinishedJob | ClaimedJob) -> Owner | None:
    if job.ledger_run is not None and (run := await tx.ledger.get(job.ledger_run)) is not None:
        return run.owner
    origin = await tx.origins.get(job.chain)
    return None if origin is None else origin.owner
