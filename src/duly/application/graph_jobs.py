"""What a job that has a graph executed may ask for: at whose cost, and under which key."""

from typing import NamedTuple

from duly.application.owners import owner_of_job
from duly.domain.executions import (
    GRAPH_RUN,
    ExecutionStatus,
    execution_key_of_job,
    request_of,
)
from duly.domain.ids import GrantId, Owner, ScheduleId
from duly.domain.jobs import FinishedJob, Job, JobStatus
from duly.domain.keys import LONGEST_IN_ASCII, in_ascii
from duly.domain.schedules import schedule_of_key
from duly.domain.sessions import ClaimedJob
from duly.ports.storage import Storage, Transaction


class Standing(NamedTuple):
    """`owner` is none for what an operator put, who may name any grant and any key; `schedule_id` is the slot's."""

    owner: Owner | None
    key: str
    schedule_id: ScheduleId | None = None


async def standing_of(storage: Storage, job: ClaimedJob) -> Standing:
    """Its owner writes its params, so they cannot make it somebody else's: not by a grant, and not by a key.

    A slot has its own key, a launch that of its owner, and whatever else an owner puts that of its chain. What a person
    has executed anew has a key of its own.
    """
    run_id, key = job.ledger_run, job.key
    if run_id is not None and key is not None:
        run = await storage.read(lambda tx: tx.ledger.get(run_id))
        if run is not None:
            return Standing(run.owner, in_ascii(key), schedule_of_key(key, job.lane))

    return await storage.read(lambda tx: standing_in(tx, job))


async def standing_in(tx: Transaction, job: ClaimedJob | Job | FinishedJob) -> Standing:
    standing = await _first_standing(tx, job)
    anew = await tx.retries.execution_key(job.chain, job.attempt)
    return standing if anew is None else standing._replace(key=anew)


async def key_to_execute_anew(tx: Transaction, last: FinishedJob) -> str | None:
    """For the attempt after this one, which a person asks for: a stored outcome is final for its key.

    None if there is none, so that what was begun goes on, and is not begun twice; or if it went well and this job,
    whose worker was lost, could not say so.
    """
    if last.kind != GRAPH_RUN:
        return None
    known = await tx.executions.by_key((await standing_in(tx, last)).key)
    if known is None or known.status is not ExecutionStatus.DONE:
        return None
    if known.ok and last.status is not JobStatus.COMPLETED:
        return None
    first = (await _first_standing(tx, last)).key
    anew = f"{first}/{last.attempt + 1}"
    return anew if len(anew) <= LONGEST_IN_ASCII else f"{last.chain}/{last.attempt + 1}"


async def _first_standing(tx: Transaction, job: ClaimedJob | Job | FinishedJob) -> Standing:
    owner = await owner_of_job(tx, job)
    named = execution_key_of_job(job.payload, job.key, job.chain)
    if owner is None:
        return Standing(None, named)
    if job.key is not None and (slot := await _slot_of(tx, job, job.key, owner)) is not None:
        return slot
    launch = await tx.workflows.launch(named)
    is_own = launch is not None and launch.owner == owner
    return Standing(owner, named if is_own else str(job.chain))


async def status_of(storage: Storage, key: str) -> ExecutionStatus | None:
    """Of what was begun under the key, if anything was."""
    begun = await storage.read(lambda tx: tx.executions.by_key(key))
    return None if begun is None else begun.status


async def _slot_of(tx: Transaction, job: ClaimedJob | Job | FinishedJob, key: str, owner: Owner) -> Standing | None:
    """One tried again by hand has no row in the ledger: what was executed says so, or the first of its chain."""
    if job.ledger_run is not None:
        return Standing(owner, in_ascii(key), schedule_of_key(key, job.lane))
    if (executed := await tx.executions.by_key(in_ascii(key))) is not None:
        grant = await tx.grants.get(GrantId(executed.grant_id))
        asked = request_of(executed.key, executed.request).schedule_id
        is_own = grant is not None and grant.user_id == owner
        return Standing(owner, executed.key, None if asked is None else ScheduleId(asked)) if is_own else None
    first = await tx.jobs.get(job.chain)
    is_slot = first is not None and first.ledger_run is not None
    return Standing(owner, in_ascii(key), schedule_of_key(key, job.lane)) if is_slot else None
