"""A job: one unit of work, a snapshot of what was asked, run once; a retry is another job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.ids import JobId, JobKey, Lane, MemberId, PoolName, RunId, SessionId, Token
from duly.domain.instants import Instant
from duly.domain.payloads import EMPTY, LARGEST_BYTES, Payload, payload_of
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DEFAULT_RETRY, RetryPolicy
from duly.domain.texts import name_of, storable_of, text_of, whole_number_of

HIGHEST_PRIORITY = 32_767
MOST_RESOURCES = 8
LONGEST_ERROR = 10_000


class JobState(StrEnum):
    """Where a live job stands. A finished job has a JobStatus instead."""

    SCHEDULED = "scheduled"  # its time has not come; not in its lane yet
    WAITING = "waiting"  # due, behind another job of its lane
    READY = "ready"  # due and head of its lane: has its place in the pool's order
    PARKED = "parked"  # head of its lane, but an extra resource it needs is full
    BACKOFF = "backoff"  # a retry whose time has not come; keeps the lane its chain holds
    CLAIMED = "claimed"  # a session has it and has not entered its handler
    RUNNING = "running"  # its handler may have been entered


# A worker has it.
LOCKED_STATES = frozenset({JobState.CLAIMED, JobState.RUNNING})


class JobStatus(StrEnum):
    """The one vocabulary shown outside: the first two while a job lives, the others when it has ended."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What a caller asks for. Everything that may be wrong with it is refused here, before any transaction."""

    kind: str
    params: Mapping[str, Any] | None = None
    key: JobKey | None = None
    lane: Lane | None = None
    pool: PoolName = DEFAULT_POOL
    resources: tuple[PoolName, ...] = ()
    priority: int = 0
    run_at: Instant | None = None
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_ms: int | None = None
    payload: Payload = field(default=EMPTY, init=False)

    def __post_init__(self) -> None:
        name_of(self.kind, field="kind")
        name_of(self.pool, field="pool")
        if self.key is not None:
            text_of(self.key, field="key")
        if self.lane is not None:
            text_of(self.lane, field="lane")
        if self.priority or type(self.priority) is not int:
            whole_number_of(self.priority, field="priority", least=-HIGHEST_PRIORITY, most=HIGHEST_PRIORITY)
        if self.run_at is not None:
            whole_number_of(self.run_at, field="run_at", least=0, most=253_402_300_799_000_000)
        if self.timeout_ms is not None:
            whole_number_of(self.timeout_ms, field="timeout_ms", least=1, most=30 * 86_400_000)
        if not isinstance(self.retry, RetryPolicy):
            raise InvalidInput("retry", f"is a {type(self.retry).__name__}", fix="use a RetryPolicy")
        if self.resources != ():
            object.__setattr__(self, "resources", self._checked_resources())
        if self.params is not None:
            object.__setattr__(self, "payload", payload_of(self.params, field="params"))

    def _checked_resources(self) -> tuple[PoolName, ...]:
        """Sorted, because resources are taken in name order; the pool itself is not an extra one."""
        if not isinstance(self.resources, (tuple, list, set, frozenset)):
            kind = type(self.resources).__name__
            raise InvalidInput("resources", f"is a {kind}, not several names", fix="pass a tuple of pool names")
        names = {PoolName(name_of(name, field="resources")) for name in self.resources} - {self.pool}
        if len(names) > MOST_RESOURCES:
            raise InvalidInput("resources", f"names {len(names)} pools", fix=f"use at most {MOST_RESOURCES}")
        return tuple(sorted(names))


class Place(NamedTuple):
    """Where a job is in its pool's order; lesser ones run first."""

    rank: int
    position: int
    created_at: int
    id: str


BEFORE_ALL = Place(-(2**63), -(2**63), -(2**63), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A live job as the store has it. Its order within the pool is (rank, position, created_at, id)."""

    id: JobId
    kind: str
    payload: Payload = EMPTY
    key: JobKey | None = None
    lane: Lane | None = None
    pool: PoolName = DEFAULT_POOL
    resources: tuple[PoolName, ...] = ()
    priority: int = 0
    rank: int = 0
    position: int = 0
    run_at: Instant
    created_at: Instant
    state: JobState = JobState.READY
    attempt: int = 1
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_ms: int | None = None
    retry_of: JobId | None = None
    chain: JobId
    session: SessionId | None = None
    token: Token | None = None
    started_at: Instant | None = None
    cancel_reason: str | None = None
    ledger_run: RunId | None = None
    member: MemberId | None = None

    @property
    def order(self) -> tuple[int, int, int, str]:
        return (self.rank, self.position, self.created_at, self.id)

    @property
    def is_locked(self) -> bool:
        return self.state in LOCKED_STATES

    def next_attempt(self, *, new_id: JobId, now: Instant, fraction: float) -> "Job | None":
        """The job that tries again after this one failed, or None when the attempts are used up.

        It keeps key, lane, pool and place of its chain, and holds the lane while it waits.
        """
        if self.attempt >= self.retry.max_attempts:
            return None
        return replace(
            self,
            id=new_id,
            attempt=self.attempt + 1,
            retry_of=self.id,
            run_at=Instant(now + self.retry.wait_after(self.attempt, fraction=fraction)),
            created_at=now,
            state=JobState.BACKOFF,
            session=None,
            token=None,
            started_at=None,
            cancel_reason=None,
        )


class SlotJob(NamedTuple):
    """What a slot asks for, as `NewJob` says it: of a target that was checked when its schedule was defined."""

    kind: str
    key: JobKey
    lane: Lane | None
    pool: PoolName
    priority: int
    run_at: Instant | None
    retry: RetryPolicy
    timeout_ms: int | None
    resources: tuple[PoolName, ...] = ()


class Entry(NamedTuple):
    """A job as it enters the queue: what was asked, and what was drawn for it before the transaction.

    `ledger_run` is the row of the ledger that runs and ends with the job and its retries, `member` a group's member.
    """

    id: JobId
    new: NewJob | SlotJob
    payload: Payload
    created_at: Instant
    position: int
    ledger_run: RunId | None = None
    member: MemberId | None = None

    @property
    def run_at(self) -> Instant:
        return self.created_at if self.new.run_at is None else self.new.run_at

    @property
    def is_due(self) -> bool:
        return self.new.run_at is None or self.new.run_at <= self.created_at


class Crowd(NamedTuple):
    """Jobs that differ in their payloads only, as they enter the queue, in order."""

    new: NewJob
    ids: Sequence[JobId]
    payloads: Sequence[Payload]
    created_at: Instant
    positions: range

    def entries(self) -> list[Entry]:
        each = zip(self.ids, self.payloads, self.positions, strict=True)
        return [Entry(job_id, self.new, payload, self.created_at, position) for job_id, payload, position in each]


class PutOutcome(StrEnum):
    CREATED = "created"
    REPLACED = "replaced"  # an unlocked job had this key: it now asks for what the newer one asked
    LEFT = "left"  # a job that has begun has this key: it was left alone, and nothing was added


class Put(NamedTuple):
    """`job_id` is the job that stands for what was put: its end is the end of this request."""

    job_id: JobId
    outcome: PutOutcome


class Executed(NamedTuple):
    """Which execution a job became, and the trace it is in."""

    run_id: str
    trace_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended, as its worker says. `place` is the line that raised: for whoever looks on, and not kept."""

    status: JobStatus
    error: str | None = None
    exit_code: int | None = None
    result: Payload | None = None
    retryable: bool = True
    executed: Executed | None = None
    place: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.status, JobStatus) or self.status in (JobStatus.QUEUED, JobStatus.RUNNING):
            raise InvalidInput(
                "status", f"{self.status} is no ending", fix="use COMPLETED, FAILED, SKIPPED or CANCELLED"
            )
        if self.exit_code is not None:
            whole_number_of(self.exit_code, field="exit_code", least=-(2**31), most=2**31 - 1)
        if self.error is not None:
            storable_of(self.error, field="error", longest=LONGEST_ERROR)
        if self.result is not None:
            storable_of(self.result, field="result", longest=LARGEST_BYTES)


class Suspended(NamedTuple):
    """No end: the run waits for people, and for the reviews of this execution. Nobody need stay with it."""

    execution: str


COMPLETED = Ending(status=JobStatus.COMPLETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """A job that has ended: the snapshot, and how it ended. `retryable` is False if trying again cannot help."""

    id: JobId
    kind: str
    payload: Payload
    key: JobKey | None
    lane: Lane | None
    pool: PoolName
    priority: int
    run_at: Instant
    created_at: Instant
    attempt: int
    max_attempts: int
    retry_of: JobId | None
    chain: JobId
    status: JobStatus
    error: str | None
    exit_code: int | None
    result: Payload | None
    started_at: Instant | None
    finished_at: Instant
    ledger_run: RunId | None
    resources: tuple[PoolName, ...] = ()
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_ms: int | None = None
    retryable: bool = True
    session: SessionId | None = None

    def again(
        self, *, new_id: JobId, attempts: int, now: Instant, position: int, member: MemberId | None = None
    ) -> Job:
        """The job that a person asks for after this one, the last of its chain: with `attempts` more, itself included.

        What became of a slot stays as it was recorded, so it carries no row of the ledger.
        """
        return Job(
            id=new_id,
            kind=self.kind,
            payload=self.payload,
            key=self.key,
            lane=self.lane,
            pool=self.pool,
            resources=self.resources,
            priority=self.priority,
            position=position,
            run_at=now,
            created_at=now,
            attempt=self.attempt + 1,
            retry=RetryPolicy.of_chain(
                max_attempts=self.attempt + attempts,
                backoff_ms=self.retry.backoff_ms,
                backoff_cap_ms=self.retry.backoff_cap_ms,
            ),
            timeout_ms=self.timeout_ms,
            retry_of=self.id,
            chain=self.chain,
            member=member,
        )


class UnknownJob(NotFound):
    code = "unknown_job"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"there is no job {job_id!r}")
        self.job_id = job_id


class JobAlreadyFinished(Conflict):
    code = "job_already_finished"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"job {job_id} has already ended")
        self.job_id = job_id


class JobFailed(Conflict):
    """There is no result: the last attempt failed, or the job was cancelled."""

    code = "job_failed"

    def __init__(self, job: FinishedJob) -> None:
        attempts = "1 attempt" if job.attempt == 1 else f"{job.attempt} attempts"
        super().__init__(
            f"job {job.id} ({job.kind}) is {job.status} after {attempts}: {job.error or 'no reason given'}"
        )
        self.job = job


class JobNotEnded(Conflict, TimeoutError):
    """Whoever waited for its result has waited long enough; the job goes on."""

    code = "job_not_ended"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"job {job_id} has not ended yet; ask for its result again")
        self.job_id = job_id


class JobLocked(Conflict):
    """A job that a worker has in hand keeps its params and its place; one that waits for a review, its params."""

    code = "job_locked"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"job {job_id} has begun, or a worker has it, so its params and its place are fixed")
        self.job_id = job_id


class ChainLive(Conflict):
    """A chain that still goes on needs no retry by hand."""

    code = "chain_live"

    def __init__(self, job_id: JobId, live: JobId) -> None:
        super().__init__(f"job {job_id} is still being tried, as job {live}; cancel that first, or wait for its end")
        self.job_id = job_id
        self.live = live


class KeyTaken(Conflict):
    """Another job has the key of a chain that is to be tried again."""

    code = "key_taken"

    def __init__(self, job_id: JobId, key: JobKey) -> None:
        super().__init__(f"job {job_id} cannot be tried again while another job has its key {key!r}")
        self.job_id = job_id
        self.key = key


class KeyOfAnother(Conflict):
    """A key stands for one live job, whoever put it; what is another owner's is neither replaced nor shown."""

    code = "key_of_another"

    def __init__(self, key: JobKey) -> None:
        super().__init__(f"the key {key!r} is in use; choose another one")
        self.key = key


class JobsApart(Conflict):
    """Places can only be compared within one pool."""

    code = "jobs_apart"

    def __init__(self, job_id: JobId, other: JobId) -> None:
        super().__init__(f"jobs {job_id} and {other} are in different pools, so neither is before the other")
        self.job_id = job_id
        self.other = other
