"""Ends runs in flight: what waits is withdrawn, what runs is asked to stop and loses its claim if it does not."""

from duly.application.pace import Pace
from duly.domain.ids import RunId
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, Job, JobAlreadyFinished, JobStatus, UnknownJob
from duly.domain.runs import Reason, RunStatus
from duly.ports.storage import Transaction

REVOKE_BATCH = 100


async def end_run(
    tx: Transaction, run_id: RunId, *, why: str, now: Instant, pace: Pace, reason: Reason | None = None
) -> bool:
    """False if it had ended by itself. A run that has started ends with `why` alone: it was not kept from running."""
    run = await tx.ledger.get(run_id)
    if run is None or run.status.is_terminal or run.job_id is None:
        return False
    try:
        job = await tx.jobs.lock((await tx.jobs.chain(run.job_id))[-1].id)
    except (UnknownJob, JobAlreadyFinished):
        return False
    if run.status is RunStatus.PENDING and not job.is_locked:
        await tx.ledger.close([run._replace(status=RunStatus.CANCELLED, reason=reason, detail=why, completed_at=now)])
    if not await tx.jobs.cancel(job.id, reason=why, now=now):
        await tx.ledger.revoke_later(job.id, at=Instant(now + pace.stop_within), reason=why)
    return True


async def revoke_due(tx: Transaction, now: Instant) -> int:
    """Takes the claims of runs that did not stop in time; answers how many were looked at."""
    due = await tx.ledger.revocations_due(now, REVOKE_BATCH)
    for job_id, reason in due:
        await tx.sessions.revoke(job_id, reason=reason, now=now)
    return len(due)


def is_cancelled(job: Job | FinishedJob | None, *, reason: str, now: Instant) -> bool:
    """Whether it ended so: for works that run again after a lost answer, and may find what they have done."""
    wanted = (JobStatus.CANCELLED, reason, now)
    return isinstance(job, FinishedJob) and (job.status, job.error, job.finished_at) == wanted
