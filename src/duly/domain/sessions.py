"""A session: one worker process's life, renewed by heartbeats; its claims die with it."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duly.domain.errors import Refused
from duly.domain.ids import JobId, JobKey, Lane, PoolName, RunId, SessionId, Token
from duly.domain.instants import Instant, Micros
from duly.domain.jobs import Ending, JobState
from duly.domain.payloads import Payload
from duly.domain.schedules import Schedule, ScheduleState
from duly.domain.texts import text_of, whole_number_of

LEASE = Micros(30_000_000)
MOST_EXECUTORS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """`capacity` is how many jobs it may run at once: one, unless its owner says otherwise.

    `kinds` are those that it has handlers for, if it says so.
    """

    id: SessionId
    name: str
    capacity: int = 1
    lease: Micros = LEASE
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        text_of(self.name, field="name")
        whole_number_of(self.capacity, field="capacity", least=1, most=MOST_EXECUTORS)
        whole_number_of(self.lease, field="lease", least=100_000, most=86_400_000_000)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`start` jobs to run now, one for each free executor, and `prefetch` more to hold ready."""

    start: int
    prefetch: int = 0


class ClaimedJob(NamedTuple):
    """What a worker is handed, straight from the row: the hot path builds nothing else."""

    id: JobId
    kind: str
    payload: Payload
    key: JobKey | None
    lane: Lane | None
    pool: PoolName
    resources: str | None
    attempt: int
    max_attempts: int
    run_at: Instant
    created_at: Instant
    timeout_ms: int | None
    chain: JobId
    token: Token
    state: JobState
    rank: int
    position: int
    ledger_run: RunId | None = None

    @property
    def order(self) -> tuple[int, int, int, str]:
        return (self.rank, self.position, self.created_at, self.id)


class Report(NamedTuple):
    """How a claimed job's run ended, and how long its handler took.

    The id of a possible retry is drawn beforehand, so that a rerun of the transaction repeats itself.
    """

    job: ClaimedJob
    ending: Ending
    retry_id: JobId | None = None
    fraction: float = 0.0
    ran_for: Micros = Micros(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What one exchange brought: jobs to run, jobs to hold, and reports refused because the claim was lost."""

    started: Sequence[ClaimedJob] = ()
    held: Sequence[ClaimedJob] = ()
    stale: Sequence[JobId] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat's answer: what the session must know even if every hint was lost."""

    cancelled: Mapping[JobId, str]
    pools_with_work: frozenset[PoolName]
    next_due_at: Instant | None
    next_expiry: Micros | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescue:
    """What was taken over from a session that stopped beating; `ended` when nothing of it is left."""

    session: SessionId
    returned: int
    failed: int
    tickets: int
    ended: bool


def warning_about(kind: str, known: frozenset[str] | None) -> str | None:
    """What to say of a kind that no live session has a handler for; `known` is None where that cannot be told."""
    if known is None or kind in known:
        return None
    if not known:
        return f"no worker is running, so nothing runs {kind!r} yet"
    near = difflib.get_close_matches(kind, sorted(known), n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"no worker that is running has a handler for {kind!r}{meant}"


def warning_about_schedule(schedule: Schedule, known: frozenset[str] | None) -> str | None:
    """Only of one that fires. What a template runs is known when it does."""
    is_told = schedule.state is ScheduleState.ACTIVE and schedule.target.template is None
    return warning_about(schedule.target.kind, known) if is_told else None


class SessionLost(Refused):
    """The session's lease ran out and its work was given to others: whatever it still holds is void."""

    code = "session_lost"

    def __init__(self, session: SessionId) -> None:
        super().__init__(f"session {session} has ended: its lease ran out and its jobs were given to others")
        self.session = session


class OverCapacity(Refused):
    """A session asked for more jobs than it said it can run at once."""

    code = "over_capacity"

    def __init__(self, session: SessionId) -> None:
        super().__init__(f"session {session} would run more jobs at once than its capacity allows")
        self.session = session
