"""Rows to domain objects and back."""

from duly.domain.ids import PoolName
from duly.domain.jobs import Entry, FinishedJob, Job, JobState, JobStatus
from duly.domain.pools import Pool, PoolMode
from duly.domain.retries import DEFAULT_RETRY, RetryPolicy
from duly.domain.tickets import Ticket, TicketState
from duly.storage.executor import Row

# Ids begin with a letter, and both databases compare them byte by byte.
PAST_EVERY_ID = "~"


def resources_text(resources: tuple[PoolName, ...]) -> str | None:
    return ",".join(resources) or None


def resource_names(text: str | None) -> tuple[PoolName, ...]:
    return tuple(PoolName(name) for name in text.split(",")) if text else ()


def job_row(job: Job, state: JobState) -> Row:
    """In the order of `insert_jobs`."""
    return (
        job.id,
        job.kind,
        job.payload,
        job.key,
        job.lane,
        job.pool,
        resources_text(job.resources),
        job.priority,
        job.position,
        job.retry_of,
        job.run_at,
        job.created_at,
        state.value,
        job.attempt,
        job.retry.max_attempts,
        job.retry.backoff_ms,
        job.retry.backoff_cap_ms,
        job.timeout_ms,
        job.chain,
        job.ledger_run,
        job.member,
    )


def entry_row(entry: Entry, state: str) -> Row:
    """In the order of `insert_jobs`: a first attempt, straight from what was asked."""
    new, retry = entry.new, entry.new.retry
    return (
        entry.id,
        new.kind,
        entry.payload,
        new.key,
        new.lane,
        new.pool,
        resources_text(new.resources) if new.resources else None,
        new.priority,
        entry.position,
        None,
        entry.created_at if new.run_at is None else new.run_at,
        entry.created_at,
        state,
        1,
        retry.max_attempts,
        retry.backoff_ms,
        retry.backoff_cap_ms,
        new.timeout_ms,
        entry.id,
        entry.ledger_run,
        entry.member,
    )


def arrival_row(entry: Entry, state: str) -> Row:
    """In the order of `insert_arrival`."""
    new, retry = entry.new, entry.new.retry
    return (
        entry.id,
        new.kind,
        entry.payload,
        new.pool,
        new.priority,
        entry.position,
        entry.created_at if new.run_at is None else new.run_at,
        entry.created_at,
        state,
        retry.max_attempts,
        retry.backoff_ms,
        retry.backoff_cap_ms,
        new.timeout_ms,
    )


def job_from_row(row: Row) -> Job:
    return Job(
        id=row[0],
        kind=row[1],
        payload=row[2],
        key=row[3],
        lane=row[4],
        pool=row[5],
        resources=resource_names(row[6]),
        priority=row[7],
        rank=row[8],
        position=row[9],
        run_at=row[10],
        created_at=row[11],
        state=JobState(row[12]),
        attempt=row[13],
        retry=_retry_from(row[14], row[15], row[16]),
        timeout_ms=row[17],
        retry_of=row[18],
        chain=row[19],
        session=row[20],
        token=row[21],
        started_at=row[22],
        cancel_reason=row[23],
        ledger_run=row[24],
        member=row[25],
    )


def finished_from_row(row: Row) -> FinishedJob:
    return FinishedJob(
        id=row[0],
        kind=row[1],
        payload=row[2],
        key=row[3],
        lane=row[4],
        pool=row[5],
        priority=row[7],
        run_at=row[8],
        created_at=row[9],
        attempt=row[10],
        max_attempts=row[11],
        retry_of=row[12],
        chain=row[13],
        started_at=row[16],
        finished_at=row[17],
        status=JobStatus(row[18]),
        error=row[19],
        exit_code=row[20],
        result=row[21],
        ledger_run=row[22],
        resources=resource_names(row[6]),
        retry=_retry_from(row[11], row[23], row[24]),
        timeout_ms=row[25],
        retryable=row[26] != 0,
        session=row[14],
    )


def _retry_from(max_attempts: int, backoff_ms: int | None, backoff_cap_ms: int | None) -> RetryPolicy:
    """Jobs that ended before their waits were kept have the usual ones."""
    if backoff_ms is None or backoff_cap_ms is None:
        backoff_ms, backoff_cap_ms = DEFAULT_RETRY.backoff_ms, DEFAULT_RETRY.backoff_cap_ms
    return RetryPolicy.of_chain(max_attempts=max_attempts, backoff_ms=backoff_ms, backoff_cap_ms=backoff_cap_ms)


def pool_from_row(row: Row) -> Pool:
    return Pool(
        name=row[0],
        slots=row[1],
        mode=PoolMode(row[2]),
        prefetch=row[3],
        ageing_ms=row[4],
        used=row[5],
        tickets=row[6],
        per_owner=row[7],
    )


def ticket_from_row(row: Row) -> Ticket:
    return Ticket(
        id=row[0],
        pool=row[1],
        session=row[2],
        created_at=row[3],
        expires_at=row[4],
        state=TicketState(row[5]),
    )
