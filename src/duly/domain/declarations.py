"""Schedules that a program declares in its own text, and what became of them when it started."""

from dataclasses import dataclass

from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner, ScheduleId
from duly.domain.policies import Policies
from duly.domain.schedules import LONGEST_ID, Target
from duly.domain.texts import text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """`policies` are the defaults if none are named."""

    id: str
    cadence: Cadence
    target: Target
    policies: Policies | None = None

    def __post_init__(self) -> None:
        text_of(self.id, field="id", longest=LONGEST_ID)
        for field, kind in (("cadence", Cadence), ("target", Target)):
            if not isinstance(getattr(self, field), kind):
                raise InvalidInput(field, f"is a {type(getattr(self, field)).__name__}", fix=f"use a {kind.__name__}")
        if self.policies is not None and not isinstance(self.policies, Policies):
            raise InvalidInput("policies", f"is a {type(self.policies).__name__}", fix="use Policies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Which program a schedule is declared by. Programs of two owners may have one name."""

    schedule_id: ScheduleId
    owner: Owner
    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """`conflicts` were left as they are, each with why.

    `restored` are those of the updated that had been before as they are declared: somebody had changed them.
    """

    created: tuple[ScheduleId, ...] = ()
    updated: tuple[ScheduleId, ...] = ()
    unchanged: tuple[ScheduleId, ...] = ()
    retired: tuple[ScheduleId, ...] = ()
    restored: tuple[ScheduleId, ...] = ()
    conflicts: tuple[tuple[ScheduleId, str], ...] = ()
