"""How many fires a span has, and which was the last: exact for every cadence, and quick however long the span."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import cron, every, once
from duly.domain.cadence import Cadence, Interval, zone_names
from duly.domain.cadence.instants import FIRST_SECOND, LAST_SECOND
from tests.brute_force import epoch, fires, watch

YEAR_2025 = (epoch(2025) - 1, epoch(2026) - 1)
SPANS = st.tuples(st.integers(-5_000, 5_000), st.integers(-5_000, 5_000))


def stepped(cadence: Cadence, after: int, through: int) -> list[int]:
    return list(takewhile(lambda second: second <= through, cadence.seconds_after(after)))


def distinct_zones() -> Iterator[str]:
    """One zone for each set of data; the rest are other names for it."""
    return iter({(files("tzdata") / "zoneinfo" / tz).read_bytes(): tz for tz in sorted(zone_names())}.values())


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize("expr", ["17 * * * *", "30 2 * * *", "*/20 0-3 * * SUN,6", "0 0 L * *", "10 15 1 * 3,10 *"])
def test_a_year_is_counted_as_it_is_stepped_in_every_zone(expr: str) -> None:
    for tz in distinct_zones():
        for year in (2011, 2025):
            cadence, after, through = cron(expr, tz), epoch(year) - 1, epoch(year + 1) - 1

            found = stepped(cadence, after, through)

            assert cadence.count(after, through) == len(found), tz
            assert cadence.last_second(through) == found[-1], tz


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize("tz", ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"])
def test_a_quarter_is_counted_as_a_clock_watcher_would(tz: str) -> None:
    for month in (2, 9):
        start, end = epoch(2025, month), epoch(2025, month + 3)
        readings = watch(tz, start, end, 60)
        for expr in ("* * * * *", "15 2 * * *", "*/7 1-2 * * SUN", "45 1,2 8-14 * SUN"):
            seen = fires(expr, readings)

            assert cron(expr, tz).count(start - 1, end - 1) == len(seen), expr
            assert cron(expr, tz).last_second(end - 1) == seen[-1], expr


@pytest.mark.req("CRON-02")
def test_a_year_of_seconds_has_a_fire_for_each_in_every_zone() -> None:
    """A wildcard follows the clock, which neither adds nor drops a second of real time."""
    for tz in zone_names():
        assert cron("* * * * * *", tz).count(*YEAR_2025) == 365 * 86_400, tz


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin", "Pacific/Apia", "Africa/Casablanca"])
@pytest.mark.parametrize("expr", ["* * * * * *", "*/5 * * * * MON-FRI", "30 2 * * *", "0 0 29 2 *"])
def test_a_century_is_counted_and_looked_back_over_without_stepping(expr: str, tz: str) -> None:
    cadence = cron(expr, tz)

    began = time.process_time()
    cadence.count(epoch(1950), epoch(2050))
    for year in range(1950, 2050):
        cadence.last_second(epoch(year))

    assert time.process_time() - began < 0.5


def test_rare_fires_are_looked_back_for_in_one_stride() -> None:
    """2100 is no leap year."""
    leap_day = cron("0 0 29 2 *", "America/New_York")

    began = time.process_time()
    found = leap_day.last_second(epoch(2104))

    assert found == epoch(2096, 2, 29, 5)
    assert time.process_time() - began < 0.1


def test_a_time_the_clock_always_skips_is_looked_back_for_until_it_was_shown() -> None:
    """New York's clock has jumped over 02:00-03:00 of March's second Sunday in every year since 2007."""
    skipped = cron("*/30 2 * 3 SUN#2", "America/New_York")

    assert skipped.last_second(epoch(2050)) == epoch(2006, 3, 12, 7, 30)
    assert skipped.count(epoch(2007), epoch(2050)) == 0


@given(seconds=st.integers(1, 700), anchor=st.integers(-2_000, 2_000), span=SPANS)
def test_an_interval_is_counted_as_it_is_stepped(seconds: int, anchor: int, span: tuple[int, int]) -> None:
    interval, (after, through) = Interval(seconds, anchor), span

    found = stepped(interval, after, through)

    assert interval.count(after, through) == len(found)
    assert interval.last_second(through) == max(stepped(interval, -5_001, through), default=None)


@given(at=st.integers(-100, 100), span=st.tuples(st.integers(-101, 101), st.integers(-101, 101)))
def test_a_single_instant_is_counted_once(at: int, span: tuple[int, int]) -> None:
    cadence, (after, through) = once(datetime.fromtimestamp(at, UTC)), span

    assert cadence.count(after, through) == len(stepped(cadence, after, through))
    assert cadence.last_second(through) == (at if at <= through else None)


@given(
    cadence=st.sampled_from(
        [every("7s"), cron("*/3 * * * *"), cron("*/40 * * * * *"), once(datetime.fromtimestamp(60, UTC))]
    ),
    first=st.none() | st.integers(-1_000, 1_000),
    length=st.none() | st.integers(0, 2_000),
    span=SPANS,
)
def test_bounds_bound_counts_too(
    cadence: Cadence, first: int | None, length: int | None, span: tuple[int, int]
) -> None:
    bounded = cadence.within(
        start_at=None if first is None else datetime.fromtimestamp(first, UTC),
        end_at=None if length is None else datetime.fromtimestamp((first or 0) + length, UTC),
    )
    after, through = span

    assert bounded.count(after, through) == len(stepped(bounded, after, through))
    assert bounded.last_second(through) == max(stepped(bounded, -6_000, through), default=None)


def test_counting_ends_with_the_year_9999() -> None:
    minutely = every("1m")

    assert minutely.count(LAST_SECOND - 3_600, LAST_SECOND + 10**12) == 60
    assert minutely.last_second(LAST_SECOND + 10**12) == LAST_SECOND - 59
    assert minutely.last_second(FIRST_SECOND - 1) is None
