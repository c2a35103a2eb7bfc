"""A backfill: runs for fires of the past, asked for by a person, never automatic."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.estimates import Estimate
from duly.domain.instants import SECOND, Instant, instant_of
from duly.domain.texts import whole_number_of

MOST_BACKFILLED = 10_000


@dataclass(frozen=True, slots=True)
class Backfill:
    """Exactly what it would touch: the oldest `cap` of the `count` fires in its span, the last of which is `last`.

    `cost` is what those instants will cost, as its schedule is at `revision`.
    """

    instants: tuple[Instant, ...]
    count: int
    cap: int
    last: Instant | None = None
    revision: int | None = None
    cost: Estimate | None = None

    @property
    def first(self) -> Instant | None:
        return self.instants[0] if self.instants else None

    def require_fit(self) -> None:
        if self.count == 0:
            raise InvalidInput("start", "no fire lies between start and end", fix="choose a longer span")
        if self.count > self.cap:
            raise InvalidInput(
                "cap", f"{self.count} fires lie between start and end", fix="choose a shorter span, or raise the cap"
            )


def backfill_of(cadence: Cadence, start: datetime, end: datetime, *, cap: int, now: Instant) -> Backfill:
    """The fires from `start` through `end`, both included."""
    whole_number_of(cap, field="cap", least=1, most=MOST_BACKFILLED)
    first, last = -(-instant_of(start, field="start") // SECOND), instant_of(end, field="end") // SECOND
    if last < first:
        raise InvalidInput("end", "lies before start", fix="swap the two")
    if last * SECOND > now:
        raise InvalidInput("end", "lies in the future", fix="what is to come fires by itself; end at now or before")
    count = cadence.count(first - 1, last)
    fires = islice(cadence.seconds_after(first - 1), min(count, cap))
    newest = cadence.last_second(last) if count else None
    return Backfill(
        tuple(Instant(second * SECOND) for second in fires),
        count,
        cap,
        last=None if newest is None else Instant(newest * SECOND),
    )
