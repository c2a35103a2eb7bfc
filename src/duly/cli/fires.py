"""A cadence as people check it: in words, its next fires on both clocks, and what clock changes do to it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice

from duly.domain.cadence import Bounded, Cadence, Cron
from duly.domain.cadence.wall import zone

_NOTED_SPAN = timedelta(days=36_525)
# A schedule is checked once, so the next change of clocks is worth telling even if it is months away.
A_YEAR = timedelta(days=366)


def preview(cadence: Cadence, now: datetime, *, count: int) -> Iterator[str]:
    """Words, fires, and the clock changes of the year to come that touch it."""
    yield cadence.explain()
    yield from fire_lines(list(islice(cadence.after(now), count)), tz=zone_of(cadence))
    for told in cadence.dst_notes(now, now + A_YEAR):
        yield f"  {told.text}"


def explanation(cadence: Cadence, now: datetime, *, count: int) -> Iterator[str]:
    """Words, fires, and the clock changes among them or in the year to come."""
    yield cadence.explain()
    fires = list(islice(cadence.after(now), count))
    yield from fire_lines(fires, tz=zone_of(cadence))
    if fires:
        for told in cadence.dst_notes(now, now + min(max(fires[-1] - now, A_YEAR), _NOTED_SPAN)):
            yield f"  {told.text}"


def fire_lines(fires: Sequence[datetime], *, tz: str) -> Iterator[str]:
    for fire in fires:
        yield f"  {fire:%Y-%m-%d %H:%M:%S}Z   {wall_time(fire, tz):%a %Y-%m-%d %H:%M:%S %z}"


def wall_time(fire: datetime, tz: str) -> datetime:
    """By the same zone data as the fire, which may be newer than the machine's."""
    offset = zone(tz).span_at(int(fire.timestamp())).offset
    return fire.astimezone(timezone(timedelta(seconds=offset)))


def zone_of(cadence: Cadence) -> str:
    while isinstance(cadence, Bounded):
        cadence = cadence.cadence
    return cadence.tz if isinstance(cadence, Cron) else "UTC"
