"""The law of time, played out minute by minute: slow, obvious, and sharing nothing with the evaluator.

It is written from the rule alone:

    A fixed-time job in a gap runs once, at the gap's end; in a fold once, at the first pass. A job is
    wildcard if its minute or hour field starts with `*`; wildcard jobs follow the wall clock: skipped in a
    gap, both passes of a fold. Shifts larger than 3 h are corrections: no make-up run, and the new clock is
    followed. The same with 5 and 6 fields.

Someone watches a wall clock, one step of UTC after another. When the hands jump forward by no more than 3
hours, the readings jumped over are looked through, and one run is made up on the spot. When they jump back by
no more than 3 hours, readings already seen are let pass.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import TypeVar
from zoneinfo import ZoneInfo

Moment = TypeVar("Moment", int, datetime)

THREE_HOURS = timedelta(hours=3)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@cache
def load_zone(name: str) -> ZoneInfo:
    with (files("tzdata") / "zoneinfo" / name).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


@dataclass(frozen=True, slots=True)
class Reading:
    """One step of the watch: the instant, what the clock shows, and what it would show had it not jumped."""

    second: int
    wall: datetime
    expected: datetime


def watch(tz: str, start: int, end: int, step: int) -> list[Reading]:
    """The wall clock's readings in [start, end), a step apart."""
    zone = load_zone(tz)
    readings = []
    wall = datetime.fromtimestamp(start - step, zone).replace(tzinfo=None, fold=0)
    for second in range(start, end, step):
        expected = wall + timedelta(seconds=step)
        wall = datetime.fromtimestamp(second, zone).replace(tzinfo=None, fold=0)
        readings.append(Reading(second, wall, expected))
    return readings


class Plan:
    """A cron expression, read the plain way."""

    def __init__(self, expr: str) -> None:
        fields = expr.upper().split()
        seconds, minutes, hours, self.dates, months, self.weekdays = ["0", *fields][-6:]
        self.wildcard = minutes.startswith("*") or hours.startswith("*")
        self.both = self.dates.startswith("*") or self.weekdays.startswith("*")
        self.seconds = numbers(seconds, 0, 59)
        self.minutes = numbers(minutes, 0, 59)
        self.hours = numbers(hours, 0, 23)
        self.months = numbers(months, 1, 12, MONTHS)

    def names(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.second in self.seconds
            and wall.month in self.months
            and self.names_day(wall)
        )

    def names_day(self, wall: datetime) -> bool:
        by_date = any(self.names_date(item, wall) for item in self.dates.split(","))
        by_weekday = any(self.names_weekday(item, wall) for item in self.weekdays.split(","))
        return (by_date and by_weekday) if self.both else (by_date or by_weekday)

    def names_date(self, item: str, wall: datetime) -> bool:
        last = monthrange(wall.year, wall.month)[1]
        if item == "L":
            return wall.day == last
        if item == "LW":
            workdays = [day for day in range(1, last + 1) if wall.replace(day=day).weekday() < 5]
            return wall.day == workdays[-1]
        return wall.day in numbers(item, 1, 31)

    def names_weekday(self, item: str, wall: datetime) -> bool:
        weekday = wall.isoweekday() % 7
        if item.endswith("L"):
            return int(item[:-1]) % 7 == weekday and wall.day + 7 > monthrange(wall.year, wall.month)[1]
        if "#" in item:
            name, nth = item.split("#")
            named = {number % 7 for number in numbers(name, 0, 7, WEEKDAYS)}
            return weekday in named and (wall.day - 1) // 7 + 1 == int(nth)
        named = numbers(item, 0, 7, WEEKDAYS)
        return weekday in named or (weekday == 0 and 7 in named)


def numbers(field: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    found: set[int] = set()
    for item in field.split(","):
        body, _, step = item.partition("/")
        if body == "*":
            first, last = low, high
        elif "-" in body:
            first, last = (number(end, low, names) for end in body.split("-"))
        else:
            first = number(body, low, names)
            last = high if step else first
        found.update(range(first, last + 1, int(step or 1)))
    return found


def number(text: str, low: int, names: list[str] | None) -> int:
    return names.index(text) + low if names and text in names else int(text)


def fires(expr: str, readings: list[Reading]) -> list[int]:
    """The seconds at which the job runs while the clock is watched."""
    return list(watched(Plan(expr), readings))


def watched(plan: Plan, readings: list[Reading]) -> Iterator[int]:
    step = timedelta(seconds=readings[1].second - readings[0].second)
    seen_until = readings[0].wall
    for now in readings:
        made_up = False
        if now.wall != now.expected and not plan.wildcard:
            jump = now.wall - now.expected
            if timedelta(0) < jump <= THREE_HOURS:
                made_up = any(plan.names(skipped) for skipped in between(now.expected, now.wall, step))
            # A clock set back by more is a new clock: whatever it shows counts as not yet seen.
            seen_until = now.expected if -THREE_HOURS <= jump < timedelta(0) else now.wall
        if made_up or (plan.names(now.wall) and now.wall >= seen_until):
            yield now.second


def between(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    while start < end:
        yield start
        start += step


def increasing(found: Iterable[Moment]) -> Iterator[Moment]:
    """The same fires, as long as each is later than the one before: one that stands still must not hang."""
    last = None
    for fire in found:
        assert last is None or fire > last, (last, fire)
        last = fire
        yield fire


def offset_changes(tz: str, start: int, end: int) -> list[tuple[int, int, int]]:
    """Each (second, offset before, offset after) in the span, looked for by day, hour, minute, second."""
    found, width = [start], end - start
    for step in (86_400, 3600, 60, 1):
        found = [later for earlier in found for later in _steps_of_change(tz, earlier, width, step)]
        width = step
    return [(second + 1, _offset(tz, second), _offset(tz, second + 1)) for second in found]


def _steps_of_change(tz: str, start: int, width: int, step: int) -> list[int]:
    """The beginnings of the steps during which the offset changes."""
    offsets = [_offset(tz, second) for second in range(start, start + width + 1, step)]
    return [start + n * step for n in range(len(offsets) - 1) if offsets[n] != offsets[n + 1]]


def _offset(tz: str, second: int) -> int:
    shown = datetime.fromtimestamp(second, load_zone(tz)).utcoffset()
    return int(shown.total_seconds()) if shown is not None else 0


def epoch(year: int, month: int = 1, day: int = 1, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp())
