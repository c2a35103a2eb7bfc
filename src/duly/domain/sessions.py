"""A session: one worker process's life, renewed by heartbeats; its claims die with it."""

from collections.abc import Mapping
from dataclasses import dataclass

from duly.domain.errors import Refused
from duly.domain.ids import JobId, PoolName, SessionId, Token
from duly.domain.instants import Instant, Micros
from duly.domain.jobs import Ending, Job
from duly.domain.texts import text_of, whole_number_of

LEASE = Micros(30_000_000)
HEARTBEAT = Micros(10_000_000)
MOST_EXECUTORS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """`capacity` is how many jobs it may run at once: one, unless its owner says otherwise."""

    id: SessionId
    name: str
    capacity: int = 1
    lease: Micros = LEASE

    def __post_init__(self) -> None:
        text_of(self.name, field="name")
        whole_number_of(self.capacity, field="capacity", least=1, most=MOST_EXECUTORS)
        whole_number_of(self.lease, field="lease", least=100_000, most=86_400_000_000)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`start` jobs to run now, one for each free executor, and `prefetch` more to hold ready."""

    start: int
    prefetch: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A run reported by the session that claimed it."""

    job: Job
    ending: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What one exchange brought: jobs to run, jobs to hold, and reports refused because the claim was lost."""

    started: tuple[Job, ...] = ()
    held: tuple[Job, ...] = ()
    stale: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat's answer: what the session must know even if every hint was lost."""

    cancelled: Mapping[JobId, str]
    pools_with_work: frozenset[PoolName]
    next_due_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescue:
    """What was taken over from a session that stopped beating."""

    session: SessionId
    returned: int
    failed: int
    retried: int
    tickets: int


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


@dataclass(frozen=True, slots=True)
class Claim:
    """The name of one claim: writes that do not carry it change nothing."""

    session: SessionId
    token: Token
