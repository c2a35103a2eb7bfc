"""How a store and those who work on it are: whether time is kept, and how much there is of everything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duly.domain.ids import PoolName, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros, written
from duly.domain.jobs import JobState
from duly.domain.pools import Pool

ALIVE_WITHIN = Micros(15 * SECOND)
OVERDUE_AFTER = Micros(5 * SECOND)
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """`overdue` counts schedules whose next slot should have been opened seconds ago; `longest_overdue` names some."""

    is_ready: bool
    problems: tuple[str, ...] = ()
    alive_at: Instant | None = None
    next_fire_at: Instant | None = None
    overdue: int = 0
    longest_overdue: tuple[ScheduleId, ...] = ()

    @property
    def problems_with_names(self) -> tuple[str, ...]:
        """For those only who may know which schedules there are."""
        if not self.longest_overdue:
            return self.problems
        more = (
            f" and {self.overdue - len(self.longest_overdue)} more" if self.overdue > len(self.longest_overdue) else ""
        )
        return (*self.problems[:-1], f"{self.problems[-1]}: {', '.join(self.longest_overdue)}{more}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Counts at one moment. `oldest_ready_at` is when the ready job that has waited longest was due."""

    schedules: Mapping[str, int]
    jobs: Mapping[tuple[PoolName, JobState], int]
    runs_in_flight: int
    sessions: int
    pools: Sequence[Pool]
    oldest_ready_at: Instant | None


class Vitals(NamedTuple):
    """What readiness is judged by."""

    alive_at: Instant | None
    next_fire_at: Instant | None
    overdue: int
    longest_overdue: tuple[ScheduleId, ...] = ()


def readiness_of(vitals: Vitals, *, now: Instant, alive_within: Micros = ALIVE_WITHIN) -> Readiness:
    """While nothing is planned, nobody need keep time."""
    problems = []
    if vitals.next_fire_at is not None:
        if vitals.alive_at is None:
            problems.append("no timekeeper was ever alive")
        elif now - vitals.alive_at > alive_within:
            problems.append(f"no timekeeper has been alive since {written(vitals.alive_at)}")
        if vitals.overdue:
            late = "1 schedule is" if vitals.overdue == 1 else f"{vitals.overdue} schedules are"
            problems.append(f"{late} overdue by more than {OVERDUE_AFTER // SECOND} s")
    return Readiness(
        is_ready=not problems,
        problems=tuple(problems),
        alive_at=vitals.alive_at,
        next_fire_at=vitals.next_fire_at,
        overdue=vitals.overdue,
        longest_overdue=vitals.longest_overdue,
    )
