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
| missed | any, catch-up none | – | part of a gap: outage |
| | allow, queue; catch-up on | – | caught up oldest first, up to the cap; the rest a gap: catch_up_cap |
| | skip, queue_one, replace; catch-up on | – | the newest is decided like a late one; the others a gap: superseded |

A slot is missed if it fires inside an outage; it is late if it fires before now and was not missed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from duly.domain.coverage import Outage
from duly.domain.ids import RunId
from duly.domain.instants import Instant
from duly.domain.policies import ONE_FOR_ALL, CatchUp, Overlap
from duly.domain.runs import GapReason, Reason
from duly.domain.schedules import Schedule

MOST_AT_ONCE = 100


@dataclass(slots=True)
class InFlight:
    """Runs of the schedule that have not ended, oldest first, and which of them only wait."""

    running: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.running or self.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
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
class Arrears:
    """Missed slots from `first` through `last` that are to be caught up, `count` of them."""

    first: int
    last: int
    count: int


@dataclass(slots=True, kw_only=True)
class Plan:
    openings: list[Opening] = field(default_factory=list)
    gaps: list[Missed] = field(default_factory=list)
    arrears: list[Arrears] = field(default_factory=list)
    withdraw: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    opened_through: int


def plan(
    schedule: Schedule, *, now: Instant, outages: Sequence[Outage], in_flight: InFlight, run_ids: Iterator[RunId]
) -> Plan:
    """Decides every slot that fires by now, at most `MOST_AT_ONCE` of them one by one; the others come next time."""
    result = Plan(opened_through=schedule.opened_through)
    missed: list[int] = []
    counted = 0
    for slot, fires_at in _due(schedule, now):
        if any(outage.holds(fires_at) for outage in outages):
            counted += 1
            missed = [missed[0] if missed else slot, slot]
        else:
            counted = _settle_missed(schedule, result, missed, counted, in_flight, run_ids)
            missed = []
            if len(result.openings) >= MOST_AT_ONCE:
                return result
            result.openings.append(_decided(schedule, result, slot, fires_at, in_flight, run_ids))
        result.opened_through = slot
    _settle_missed(schedule, result, missed, counted, in_flight, run_ids)
    return result


def _due(schedule: Schedule, now: Instant) -> Iterator[tuple[int, Instant]]:
    for slot in schedule.cadence.seconds_after(schedule.opened_through):
        fires_at = schedule.fires_at(slot)
        if fires_at > now:
            return
        yield slot, fires_at


def _settle_missed(
    schedule: Schedule, result: Plan, missed: list[int], count: int, in_flight: InFlight, run_ids: Iterator[RunId]
) -> int:
    """Missed slots in a row, before the next that was not; answers the new count, which is none."""
    if not missed:
        return 0
    first, last = missed
    policies = schedule.policies
    if policies.catch_up is CatchUp.NONE:
        result.gaps.append(Missed(first, last, count, GapReason.OUTAGE))
    elif policies.overlap in ONE_FOR_ALL:
        if count > 1:
            result.gaps.append(Missed(first, last - 1, count - 1, GapReason.SUPERSEDED))
        opening = _decided(schedule, result, last, schedule.fires_at(last), in_flight, run_ids)
        result.openings.append(opening)
    else:
        result.arrears.append(Arrears(first, last, count))
    return 0


def _decided(
    schedule: Schedule,
    result: Plan,
    slot: int,
    fires_at: Instant,
    in_flight: InFlight,
    run_ids: Iterator[RunId],
) -> Opening:
    run_id = next(run_ids)
    reason, detail = _closed(schedule.policies.overlap, in_flight)
    if reason is None:
        if schedule.policies.overlap is Overlap.REPLACE:
            result.withdraw += in_flight.waiting
            result.stop += in_flight.running
            in_flight.waiting.clear()
        in_flight.waiting.append(run_id)
    return Opening(run_id=run_id, slot=slot, fire_at=fires_at, reason=reason, detail=detail)


def _closed(overlap: Overlap, in_flight: InFlight) -> tuple[Reason | None, str | None]:
    if overlap is Overlap.SKIP and in_flight:
        others = in_flight.running or in_flight.waiting
        return Reason.OVERLAP, f"{others[0]} was still in flight"
    if overlap is Overlap.QUEUE_ONE and in_flight.waiting:
        return Reason.COALESCED, f"coalesced into {in_flight.waiting[-1]}, which was waiting"
    return None, None
