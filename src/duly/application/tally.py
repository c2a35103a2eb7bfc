"""What became of slots, counted, and how late they were opened."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from duly.domain.decisions import Decision, Fate
from duly.domain.ids import SessionId
from duly.domain.instants import Micros
from duly.domain.sessions import ClaimedJob, Report, Rescue

# In milliseconds; the last one has no end.
DRIFT_BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 60_000)


def say_nothing(_: Decision) -> None:
    return


@dataclass(slots=True)
class Drift:
    """How long after its time each slot was opened: a count for each bound, and one for what is later than all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(DRIFT_BOUNDS_MS) + 1))
    total: int = 0

    def add(self, late: Micros) -> None:
        self.counts[bisect_left(DRIFT_BOUNDS_MS, late / 1_000)] += 1
        self.total += late


@dataclass(slots=True)
class Tally:
    """Counts since this process began; `say` is told of every decision, for a log."""

    say: Callable[[Decision], None] = say_nothing
    schedules_due: int = 0
    runs_emitted: int = 0
    runs_skipped_overlap: int = 0
    runs_failed_launch: int = 0
    runs_caught_up: int = 0
    slots_missed: int = 0
    schedules_broken: int = 0
    jobs_started: int = 0
    jobs_ended: int = 0
    sessions_lost: int = 0
    sessions_rescued: int = 0
    failures: int = 0
    last_failure: str | None = None
    drift: Drift = field(default_factory=Drift)

    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:
        self.schedules_due += due
        for decision in decisions:
            self._count(decision)
            self.say(decision)

    def _count(self, decision: Decision) -> None:
        match decision.fate:
            case Fate.OPENED:
                self.runs_emitted += 1
                self.drift.add(decision.late)
            case Fate.CAUGHT_UP:
                self.runs_emitted += 1
                self.runs_caught_up += 1
            case Fate.SKIPPED:
                self.runs_skipped_overlap += 1
            case Fate.FAILED:
                self.runs_failed_launch += 1
            case Fate.MISSED:
                self.slots_missed += decision.count
            case Fate.BROKEN:
                self.schedules_broken += 1
            case Fate.REPLACED | Fate.OWED | Fate.STOPPED:
                pass

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        self.jobs_started += len(started)
        self.jobs_ended += len(ended)

    def session_lost(self, session: SessionId, *, running: int) -> None:  # noqa: ARG002 - counted, not named
        self.sessions_lost += 1

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        self.sessions_rescued += sum(rescue.ended for rescue in rescues)

    def failed(self, what: str, error: Exception) -> None:
        self.failures += 1
        self.last_failure = f"{what}: {type(error).__name__}: {error}"
