"""Missed slots that are caught up: how many at once, when the next ones, and which are too many."""

from dataclasses import dataclass, replace
from itertools import islice

from duly.application.pace import Pace
from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.openings import Missed, ToCatchUp
from duly.domain.policies import CatchUp
from duly.domain.runs import NO_PAUSE, Arrears, Gap, GapReason
from duly.domain.schedules import Schedule


def owed_for(schedule: Schedule, missed: ToCatchUp, *, now: Instant, pace: Pace) -> tuple[Arrears, Missed | None]:
    """What is owed for slots missed in a row: the oldest, as many as the cap allows; the others are a gap."""
    cap = schedule.policies.catch_up_cap
    kept, rest = missed, None
    if missed.count > cap:
        last = next(islice(schedule.cadence.seconds_after(missed.first - 1), cap - 1, None))
        following = schedule.cadence.next_second(last)
        assert following is not None  # noqa: S101 - there are more than the cap
        kept = ToCatchUp(missed.first, last, cap)
        rest = Missed(following, missed.last, missed.count - cap, GapReason.CATCH_UP_CAP)
    spread = schedule.policies.catch_up is CatchUp.SPREAD
    arrears = Arrears(
        schedule_id=schedule.id,
        revision=schedule.revision,
        first=Instant(kept.first * SECOND),
        next=Instant(kept.first * SECOND),
        last=Instant(kept.last * SECOND),
        count=kept.count,
        due_at=now,
        every=Micros(pace.lookahead // kept.count) if spread else NO_PAUSE,
    )
    return arrears, rest


@dataclass(frozen=True, slots=True)
class Taken:
    """Slots whose turn it is, oldest first, and what is owed after them."""

    slots: list[int]
    left: Arrears


def take(owed: Arrears, cadence: Cadence, *, now: Instant, most: int, pace: Pace) -> Taken:
    """As many as are due, `most` at most. Those that are not spread come `most` by `most`, a tick apart."""
    due = 1 + (now - owed.due_at) // owed.every if owed.every else owed.count
    wanted = min(due, most, owed.count)
    slots = list(islice(cadence.seconds_after(owed.next // SECOND - 1), wanted))
    if len(slots) < wanted or slots[-1] * SECOND > owed.last:
        raise InvalidInput("cadence", "has fewer fires than when they were missed")
    left = owed.count - wanted
    following = cadence.next_second(slots[-1]) if left else None
    due_at = owed.due_at + owed.every * len(slots) if owed.every else now + pace.tick
    cursor = owed.last if following is None else Instant(following * SECOND)
    return Taken(slots, replace(owed, next=cursor, count=left, due_at=Instant(due_at)))


def forgiven(owed: Arrears, *, now: Instant) -> tuple[Gap, Arrears]:
    """What nobody will catch up with any more is an outage's gap, and nothing is owed."""
    gap = Gap(
        schedule_id=owed.schedule_id,
        reason=GapReason.OUTAGE,
        first=owed.next,
        last=owed.last,
        count=owed.count,
        recorded_at=now,
        revision=owed.revision,
    )
    return gap, replace(owed, count=0)
