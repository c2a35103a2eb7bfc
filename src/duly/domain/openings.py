"""What to do about the slots of one schedule that are due: the decision table, as a pure function.

| slot | overlap | in flight | becomes |
|---|---|---|---|
| on time or late | allow | anything | a run, beside the others |
| | skip | nothing | a run |
| | skip | something | skipped: overlap |
| | queue | anything | a run, behind the others |
| | queue_one | nothing waits | a run, behind the one that runs |
| | queue_one | one waits | skipped: coalesced into the one that waits |
| | replace | anything | a run; what waits is cancelled, what runs is asked to stop |
| missed | any, catch-up none | - | part of a gap: outage |
| | allow, queue; catch-up on | - | caught up oldest first, up to the cap; the rest a gap: catch_up_cap |
| | skip, queue_one, replace; catch-up on | - | the newest is decided like a late one; the others a gap: superseded |

A slot is missed if it fires inside an outage; it is late if it fires before now and was not missed.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from duly.domain.coverage import Outage
from duly.domain.ids import RunId
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import ONE_FOR_ALL, CatchUp, Overlap
from duly.domain.runs import GapReason, Reason
from duly.domain.schedules import Schedule

MOST_AT_ONCE = 100


@dataclass(slots=True)
class InFlight:
    """Runs of the schedule that have not ended, oldest first; which only wait, and for what, if that is known."""

    running: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    waits_for: str | None = None

    def __bool__(self) -> bool:
        return bool(self.running or self.waiting)

    @property
    def in_words(self) -> str:
        """The oldest that runs, or, if none does, that waits."""
        if self.running:
            return f"{self.running[0]} was still running"
        return f"{self.waiting[0]} was still waiting" + (f" for {self.waits_for}" if self.waits_for else "")


class Opening(NamedTuple):
    """A slot's row: a run to put, or the reason why there is none."""

    run_id: RunId
    slot: int
    fire_at: Instant
    reason: Reason | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Missed slots from `first` through `last` that get no rows, and why."""

    first: int
    last: int
    count: int
    reason: GapReason


@dataclass(frozen=True, slots=True)
class ToCatchUp:
    """Missed slots from `first` through `last` that are to be caught up, `count` of them."""

    first: int
    last: int
    count: int


@dataclass(slots=True, kw_only=True)
class Plan:
    """What becomes of the slots through `opened_through`, and which one comes next, at `fire_at`."""

    openings: list[Opening] = field(default_factory=list)
    gaps: list[Missed] = field(default_factory=list)
    arrears: list[ToCatchUp] = field(default_factory=list)
    withdraw: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    opened_through: int
    next_slot: int | None = None
    fire_at: Instant | None = None


def plan(
    schedule: Schedule, *, now: Instant, outages: Sequence[Outage], in_flight: InFlight, run_ids: Iterator[RunId]
) -> Plan:
    """Decides every slot that fires by now, until `MOST_AT_ONCE` have got rows; the others come next time.

    Slots missed in an outage are counted, not listed, so that the longest outage costs no more than the shortest.
    """
    deciding = _Deciding(schedule, in_flight, run_ids)
    decided = deciding.plan
    silences = _Silences(outages)
    slot, fires_at = schedule.next_after(schedule.opened_through)
    while slot is not None and fires_at is not None and fires_at <= now and not deciding.is_full:
        outage = silences.around(fires_at)
        if outage is not None:
            deciding.miss(slot, _last_slot(schedule, slot, fires_by=min(now, Instant(outage.end - 1))))
        else:
            deciding.open_late(slot, fires_at)
        slot, fires_at = schedule.next_after(decided.opened_through)
    deciding.settle_missed()
    decided.next_slot, decided.fire_at = slot, fires_at
    return decided


def _last_slot(schedule: Schedule, first: int, *, fires_by: Instant) -> int:
    """The last slot that is planned and fires by an instant, or the first if that alone fires by then.

    Jitter stays under half the way to the neighbours: if the last one planned fires too late, the one before does not,
    and at most one planned later fires by then, which is found in its turn.
    """
    last = schedule.cadence.last_second(fires_by // SECOND)
    if last is not None and schedule.fires_at(last) > fires_by:
        last = schedule.cadence.last_second(last - 1)
    return first if last is None else max(first, last)


class _Silences:
    """The outages, to be asked about ever later instants; they may overlap."""

    def __init__(self, outages: Sequence[Outage]) -> None:
        self._ahead = deque(sorted(outages, key=attrgetter("start")) if outages else ())

    def around(self, instant: Instant) -> Outage | None:
        while self._ahead and self._ahead[0].end <= instant:
            self._ahead.popleft()
        return self._ahead[0] if self._ahead and self._ahead[0].holds(instant) else None


class _Deciding:
    """The table above, slot after slot: what one slot opens is in flight for the next."""

    def __init__(self, schedule: Schedule, in_flight: InFlight, run_ids: Iterator[RunId]) -> None:
        self.plan = Plan(opened_through=schedule.opened_through)
        self._schedule = schedule
        self._in_flight = in_flight
        self._run_ids = run_ids
        self._missed: ToCatchUp | None = None

    @property
    def is_full(self) -> bool:
        return len(self.plan.openings) >= MOST_AT_ONCE

    def miss(self, first: int, last: int) -> None:
        count = self._schedule.cadence.count(first - 1, last)
        if self._missed is None:
            self._missed = ToCatchUp(first, last, count)
        else:
            self._missed = ToCatchUp(self._missed.first, last, self._missed.count + count)
        self.plan.opened_through = last

    def open_late(self, slot: int, fires_at: Instant) -> None:
        """The missed before it come first; if one of them took the last row, the slot comes next time."""
        self.settle_missed()
        if not self.is_full:
            self._open(slot, fires_at)
            self.plan.opened_through = slot

    def settle_missed(self) -> None:
        """Missed slots in a row, before the next that was not missed."""
        missed, self._missed = self._missed, None
        if missed is None:
            return
        policies = self._schedule.policies
        if policies.catch_up is CatchUp.NONE:
            self.plan.gaps.append(Missed(missed.first, missed.last, missed.count, GapReason.OUTAGE))
        elif policies.overlap in ONE_FOR_ALL:
            older = self._schedule.cadence.last_second(missed.last - 1)
            if older is not None and missed.count > 1:
                self.plan.gaps.append(Missed(missed.first, older, missed.count - 1, GapReason.SUPERSEDED))
            self._open(missed.last, self._schedule.fires_at(missed.last))
        else:
            self.plan.arrears.append(missed)

    def _open(self, slot: int, fires_at: Instant) -> None:
        run_id = next(self._run_ids)
        reason, detail = self._why_not()
        if reason is None:
            self._make_way()
            self._in_flight.waiting.append(run_id)
        opening = Opening(run_id=run_id, slot=slot, fire_at=fires_at, reason=reason, detail=detail)
        self.plan.openings.append(opening)

    def _why_not(self) -> tuple[Reason | None, str | None]:
        match self._schedule.policies.overlap:
            case Overlap.SKIP if self._in_flight:
                return Reason.OVERLAP, self._in_flight.in_words
            case Overlap.QUEUE_ONE if self._in_flight.waiting:
                return Reason.COALESCED, f"coalesced into {self._in_flight.waiting[-1]}, which was waiting"
            case _:
                return None, None

    def _make_way(self) -> None:
        """What is replaced within this very plan was never put: it is closed, not withdrawn."""
        if self._schedule.policies.overlap is not Overlap.REPLACE:
            return
        planned = {opening.run_id for opening in self.plan.openings}
        self.plan.openings = [
            opening._replace(reason=Reason.REPLACED, detail="a later slot took its place")
            if opening.run_id in self._in_flight.waiting
            else opening
            for opening in self.plan.openings
        ]
        self.plan.withdraw += [run for run in self._in_flight.waiting if run not in planned]
        self.plan.stop += [run for run in self._in_flight.running if run not in self.plan.stop]
        self._in_flight.waiting.clear()
