"""Nights on which clocks change, the weeks or minutes around them, and cadences with the slots they have in there.

The slots are found by brute force: whatever the evaluator says about them, nobody asks it here.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random

from duly.domain.cadence import Cadence, cron, every, once
from tests import brute_force

# In seconds of the processes' own time: how far slots are known before and after the night.
_KNOWN_BEFORE = 2_400
_KNOWN_AFTER = 3_600
_EARLIER = 3 * 3600

# An hour that the change skips or repeats stands for {h}.
_EXPRESSIONS = {
    1: (
        "* * * * *",
        "*/3 * * * *",
        "*/20 * * * * *",
        "15,45 */2 * * * *",
        "0,10,20,30,50 {h} * * *",
        "30 5,25,59 {h} * * *",
        "*/5 {h} * * *",
    ),
    60: (
        "*/15 * * * *",
        "*/7 * * * *",
        "30 * * * *",
        "0 */2 * * *",
        "30 {h} * * *",
        "15,45 {h},12 * * *",
        "*/20 {h} * * *",
    ),
    720: (
        "0 */6 * * *",
        "30 {h} * * *",
        "0,30 {h} * * *",
        "*/30 {h} * * *",
        "0 9 * * MON-FRI",
        "15 {h},18 * * *",
        "30 {h} * * SUN",
        "0 0 L * *",
    ),
}
SCALES = tuple(_EXPRESSIONS)


@dataclass(frozen=True, slots=True)
class Night:
    tz: str
    second: int
    hour: int


NIGHTS = (
    Night("America/New_York", brute_force.epoch(2026, 3, 8, 7), 2),
    Night("America/New_York", brute_force.epoch(2026, 11, 1, 6), 1),
    Night("Europe/Berlin", brute_force.epoch(2026, 3, 29, 1), 2),
    Night("Europe/Berlin", brute_force.epoch(2026, 10, 25, 1), 2),
    Night("Australia/Lord_Howe", brute_force.epoch(2026, 4, 4, 15), 1),
    Night("Australia/Lord_Howe", brute_force.epoch(2026, 10, 3, 15, 30), 2),
    Night("America/Sao_Paulo", brute_force.epoch(2018, 2, 18, 2), 23),
    Night("America/Sao_Paulo", brute_force.epoch(2018, 11, 4, 3), 0),
    Night("Africa/Cairo", brute_force.epoch(2023, 4, 27, 22), 0),
    Night("Africa/Cairo", brute_force.epoch(2023, 10, 26, 21), 23),
)


@dataclass(frozen=True, slots=True)
class Season:
    """The time around a night in which a simulated machine lives."""

    night: Night
    scale: int

    @property
    def first(self) -> int:
        return self.night.second - _KNOWN_BEFORE * self.scale

    @property
    def end(self) -> int:
        return self.night.second + _KNOWN_AFTER * self.scale

    @property
    def expressions(self) -> tuple[str, ...]:
        return tuple(pattern.replace("{h}", str(self.night.hour)) for pattern in _EXPRESSIONS[self.scale])


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """A cadence in the simulation's own words: one of three, perhaps between bounds."""

    season: Season
    expr: str | None = None
    tz: str = "UTC"
    every: int | None = None
    anchor: int = 0
    once: int | None = None
    first: int | None = None
    last: int | None = None

    def cadence(self) -> Cadence:
        """What the product is asked for."""
        made: Cadence
        if self.expr is not None:
            made = cron(self.expr, self.tz)
        elif self.every is not None:
            made = every(timedelta(seconds=self.every), anchor=_moment(self.anchor))
        else:
            made = once(_moment(self.once or 0))
        if self.first is None and self.last is None:
            return made
        bounds = {"start_at": self.first, "end_at": self.last}
        return made.within(**{name: _moment(at) for name, at in bounds.items() if at is not None})

    def slots(self, after: int, through: int) -> list[int]:
        """Its slots later than `after`, up to `through`."""
        known = _slots(self)
        return known[bisect_right(known, after) : bisect_right(known, through)]

    def __str__(self) -> str:
        words = [
            f"{self.expr} {self.tz}" if self.expr else f"every {self.every}" if self.every else f"once {self.once}"
        ]
        words += [f"from {self.anchor}"] if self.anchor else []
        words += [f"within {self.first} {self.last}"] if (self.first, self.last) != (None, None) else []
        return " ".join(words)


def draw_timetable(random: Random, season: Season, now: int) -> Timetable:
    drawn = _draw_unbounded(random, season, now)
    if random.random() < 0.75:
        return drawn
    first, last = sorted(now + random.randrange(-600, 2_400) * season.scale for _ in range(2))
    return replace(drawn, first=random.choice([first, None]), last=random.choice([last, None]))


def _draw_unbounded(random: Random, season: Season, now: int) -> Timetable:
    kind = random.random()
    if kind < 0.5:
        tz = random.choice([season.night.tz] * 3 + ["UTC"])
        return Timetable(season=season, expr=random.choice(season.expressions), tz=tz)
    if kind < 0.9:
        period = random.choice([3, 11, 15, 30, 47, 60, 60, 90, 240]) * season.scale
        return Timetable(season=season, every=period, anchor=now + random.randrange(-900, 300) * season.scale)
    return Timetable(season=season, once=now + random.randrange(5, 600) * season.scale)


@lru_cache(200)
def _slots(timetable: Timetable) -> list[int]:
    season = timetable.season
    if timetable.expr is not None:
        found = _fires(timetable.tz, season)[timetable.expr]
    elif timetable.every is not None:
        found = list(_steps(timetable.anchor, timetable.every, season))
    else:
        found = [] if timetable.once is None else [timetable.once]
    first = season.first if timetable.first is None else timetable.first
    last = season.end if timetable.last is None else timetable.last
    return [second for second in found if first <= second <= last]


def _steps(second: int, period: int, season: Season) -> Iterator[int]:
    while second < season.end:
        if second >= season.first:
            yield second
        second += period


@lru_cache(20)
def _fires(tz: str, season: Season) -> dict[str, list[int]]:
    """Of all the season's expressions at once: looking at the clock is what takes long.

    The watch begins early: what a clock that is set back shows again must have been seen before.
    """
    readings = brute_force.watch(tz, season.first - _EARLIER, season.end, 1 if season.scale == 1 else 60)
    return {expr: brute_force.fires(expr, readings) for expr in season.expressions}


def _moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
