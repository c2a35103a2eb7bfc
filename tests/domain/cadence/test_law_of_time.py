"""The evaluator against the brute-force clock watcher, around every clock change of every zone."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile

import pytest

import duly
from duly.domain.cadence import Cadence, zone_names
from tests.brute_force import epoch, fires, increasing, offset_changes, watch

HOUR = 3600
DAY = 24 * HOUR


@cache
def every_change() -> dict[str, list[tuple[str, int, int, int]]]:
    """Each clock change of 2020-2037 once, filed under a zone that has it, as (zone, second, before, after).

    Zones that share their data, or an equal change between equal offsets, show the evaluator the same night.
    """
    seen: set[object] = set()
    filed: dict[str, list[tuple[str, int, int, int]]] = {}
    for tz in sorted(zone_names()):
        data = (files("tzdata") / "zoneinfo" / tz).read_bytes()
        if data not in seen:
            seen.add(data)
            changes = offset_changes(tz, epoch(2020), epoch(2038))
            filed[tz] = [(tz, *change) for change in changes if change not in seen]
            seen.update(changes)
    return filed


def expressions_around(second: int, before: int, after: int) -> Iterator[str]:
    """Expressions aimed at the readings the change skips or repeats, and at their neighbours."""
    for wall in sorted({second + before, second + after, second + (before + after) // 120 * 60}):
        minute, hour = wall // 60 % 60, wall // HOUR % 24
        later = min(hour + 2, 23)
        yield f"{minute} {hour} * * *"
        yield f"{(minute + 59) % 60} {hour} * * *"
        yield f"*/15 {hour} * * *"
        yield f"{minute},59 {hour},{(hour + 1) % 24} * * *"
        yield f"{minute} {hour} * * {(wall // DAY + 4) % 7}"
        yield f"5/20 {hour}-{later} * * *"
        yield f"15 {minute} {hour} * * *"
    yield from ("* * * * *", "30 * * * *", "0 0-23/2 * * *", "17 */3 * * *", "15-45/15 0-3 * * MON-7")
    yield from ("0 0 * * *", "45 23 L * *", "0 */30 * * * *", "*/15 30 0-4 * * *")


def fires_of(cadence: Cadence, start: int, end: int) -> list[int]:
    return list(takewhile(lambda second: second < end, increasing(cadence.seconds_after(start - 1))))


def assert_next_is_the_first_later(cadence: Cadence, expected: list[int], instants: Iterable[int]) -> None:
    for instant in instants:
        place = bisect_right(expected, instant)
        if place < len(expected):
            assert cadence.next_second(instant) == expected[place], (cadence, instant)


def assert_counts_and_looks_back_alike(cadence: Cadence, expected: list[int], instants: Iterable[int]) -> None:
    """`instants` are those of one watch, in order; the first lies before it."""
    places = [(instant, bisect_right(expected, instant)) for instant in instants]
    for (after, passed), (through, place) in pairwise(places):
        assert cadence.count(after, through) == place - passed, (cadence, after, through)
        if place:
            assert cadence.last_second(through) == expected[place - 1], (cadence, through)
    assert cadence.count(places[0][0], places[-1][0]) == len(expected), cadence


def assert_night(tz: str, second: int, exprs: Iterable[str], *, hours: int, step: int) -> None:
    """Given a watch around the change, the evaluator fires then and only then, from wherever it starts."""
    start, end = second - hours * HOUR, second + hours * HOUR
    readings = watch(tz, start, end, step)
    for expr in exprs:
        cadence = duly.cron(expr, tz)

        expected = fires(expr, readings)

        assert fires_of(cadence, start, end) == expected, (expr, tz, second)
        near = {second - 1, second, second + 1, *range(second - 2 * HOUR, second + 3 * HOUR, 437)}
        assert_next_is_the_first_later(cadence, expected, near)
        far = {start - 1, *range(second - 2 * HOUR, second + 3 * HOUR, 1811), end - 1}
        assert_counts_and_looks_back_alike(cadence, expected, sorted(far | {second - 1, second, second + 1}))


@pytest.mark.req("CRON-02")
@pytest.mark.req("DEC-003")
def test_every_clock_change_of_every_zone_until_2037_is_handled_as_a_clock_watcher_would() -> None:
    changes = [change for filed in every_change().values() for change in filed]
    assert len(changes) > 1000
    for tz, second, before, after in changes:
        exprs = list(expressions_around(second, before, after))
        assert_night(tz, second, [e for e in exprs if len(e.split()) == 5], hours=4, step=60)
        assert_night(tz, second, [e for e in exprs if len(e.split()) == 6], hours=4, step=15)


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize(
    "tz",
    [
        "Africa/Cairo",
        "Africa/Casablanca",
        "America/Havana",
        "America/Santiago",
        "America/Scoresbysund",
        "Antarctica/Troll",
        "Asia/Beirut",
        "Atlantic/Azores",
        "Australia/Lord_Howe",
        "Europe/Berlin",
        "Pacific/Chatham",
    ],
)
def test_the_days_around_a_clock_change_keep_their_fires(tz: str) -> None:
    for second, before, after in offset_changes(tz, epoch(2024), epoch(2026)):
        exprs = (e for e in expressions_around(second, before, after) if len(e.split()) == 5)
        assert_night(tz, second, exprs, hours=40, step=60)


STRANGE_NIGHTS = [
    ("America/Anchorage", 1867),  # a whole day repeated, between offsets with odd seconds
    ("America/New_York", 1883),  # from the sun's time to the railway's: 3 min 58 s repeated
    ("Europe/Amsterdam", 1937),  # 28 s skipped
    ("Pacific/Kwajalein", 1969),  # 23 hours repeated
    ("Africa/Monrovia", 1972),  # 44 min 30 s skipped
    ("Pacific/Kwajalein", 1993),  # a day skipped
    ("Antarctica/Casey", 2009),  # 3 hours skipped, the largest shift that is not a correction
    ("Antarctica/Casey", 2010),  # 3 hours repeated
    ("Pacific/Apia", 2011),  # a day skipped
    ("Asia/Pyongyang", 2018),  # half an hour skipped up to midnight
    ("America/Sao_Paulo", 2018),  # midnight itself skipped
]


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize(("tz", "year"), STRANGE_NIGHTS)
def test_strange_nights_of_history_follow_the_same_rule(tz: str, year: int) -> None:
    changes = offset_changes(tz, epoch(year), epoch(year + 1))
    assert changes
    for second, before, _after in changes:
        minute, hour = (second + before) // 60 % 60, (second + before) // HOUR % 24
        exprs = (
            f"{minute} {hour} * * *",
            f"{(minute + 10) % 60} {hour} * * *",
            f"*/7 {hour} * * *",
            "30 * * * *",
            "0 9 * * *",
            f"*/7 {minute} {hour} * * *",
            "29 59 23 * * *",
        )
        assert_night(tz, second, exprs, hours=26, step=1)
