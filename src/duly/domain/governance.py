"""System schedules: what a file says of them, and what a sync made of it."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.cadence import Cadence
from duly.domain.errors import Conflict
from duly.domain.ids import AccountId, ScheduleId, VirtualKeyId
from duly.domain.policies import Policies
from duly.domain.schedules import SYSTEM_PREFIX, Schedule, Target
from duly.domain.texts import name_of

PROGRAM = "governance"
"""Under which the schedules that a file has named are known as declared."""

ACCOUNT, KEY = AccountId("acct_system"), VirtualKeyId("vkey_system")
MOST_GOVERNED = 500

REMOVED = "the file of system schedules no longer names it"
SWITCHED_OFF = "the file of system schedules says so"


class Fate(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """`enabled` is none if the file leaves it open; `graph_id` is of one that needs a grant to run."""

    name: str
    cadence: Cadence
    target: Target
    policies: Policies | None = None
    enabled: bool | None = None
    graph_id: str | None = None

    def __post_init__(self) -> None:
        name_of(self.name, field="name")

    @property
    def id(self) -> ScheduleId:
        return ScheduleId(f"{SYSTEM_PREFIX}{self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """One schedule before and after; `is_held` says that somebody had paused it, and it stays so."""

    id: ScheduleId
    fate: Fate
    before: Schedule | None
    after: Schedule
    is_held: bool = False


class GovernanceTaken(Conflict):
    """A schedule that the file names is somebody else's."""

    code = "governance_taken"

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"schedule {schedule_id!r} is not the system's: rename it in the file; nothing was changed")
        self.schedule_id = schedule_id
