"""The ledger: one row for each slot that was opened or closed, and one for each span in which none was."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from duly.domain.cadence import Cadence, UnreadableCron
from duly.domain.errors import Conflict, NotFound
from duly.domain.ids import JobId, Owner, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros

NO_PAUSE = Micros(0)


class RunKind(StrEnum):
    SLOT = "slot"
    MANUAL = "manual"
    BACKFILL = "backfill"


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self not in (RunStatus.PENDING, RunStatus.RUNNING)


class Reason(StrEnum):
    """Why a slot was closed without a run, or ended before it could run."""

    OVERLAP = "overlap"
    COALESCED = "coalesced"
    REPLACED = "replaced"
    BROKEN = "broken"
    LAUNCH = "launch"  # its job could not be put


class GapReason(StrEnum):
    OUTAGE = "outage"  # nobody kept time, and the schedule does not catch up
    CATCH_UP_CAP = "catch_up_cap"  # more were missed than may be caught up
    SUPERSEDED = "superseded"  # a newer missed slot stands for them


class Run(NamedTuple):
    """A ledger row. `scheduled_for` is the slot, in whole seconds; a planned slot has one row, and no `own_key`.

    Manual and backfill runs may share a slot; each is unique by the key it was given. A tuple: a thousand slots may be
    due at once, and a frozen dataclass of so many fields takes five times as long to make.
    """

    id: RunId
    schedule_id: ScheduleId
    owner: Owner
    revision: int
    scheduled_for: Instant
    fire_at: Instant
    opened_at: Instant
    kind: RunKind = RunKind.SLOT
    own_key: str = ""
    status: RunStatus = RunStatus.PENDING
    reason: Reason | None = None
    detail: str | None = None
    job_id: JobId | None = None
    run_id: str | None = None
    trace_id: str | None = None
    attempt_count: int = 0
    started_at: Instant | None = None
    completed_at: Instant | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The planned slots from `first` through `last`, `count` of them, have no rows, and this is why."""

    schedule_id: ScheduleId
    reason: GapReason
    first: Instant
    last: Instant
    count: int
    recorded_at: Instant
    revision: int

    def continues(self, earlier: "Gap", cadence: Cadence) -> bool:
        """Whether both have one reason and no planned slot lies between them, as far as can be read."""
        if (self.reason, self.revision) != (earlier.reason, earlier.revision) or isinstance(cadence, UnreadableCron):
            return False
        return cadence.next_second(earlier.last // SECOND) == self.first // SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrears:
    """Missed slots that are being caught up: `count` of them from `next` through `last`, the next one at `due_at`.

    `every` is the pause between two of them, nothing unless they are spread.
    """

    schedule_id: ScheduleId
    revision: int
    first: Instant
    next: Instant
    last: Instant
    count: int
    due_at: Instant
    every: Micros = NO_PAUSE


class UnknownRun(NotFound):
    code = "unknown_run"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"there is no run {run_id!r}")
        self.run_id = run_id


class RunAlreadyEnded(Conflict):
    code = "run_already_ended"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} has already ended")
        self.run_id = run_id
