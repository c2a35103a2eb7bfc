"""What holds for every expression, zone and instant."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import duly
from duly.domain.cadence import Cadence, Cron, zone_names
from duly.domain.cadence.instants import FIRST_SECOND, LAST_SECOND
from tests.brute_force import Plan, increasing

MONTHS = ["JAN", "FEB", "mar", "Apr", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "dec"]
WEEKDAYS = ["SUN", "mon", "TUE", "Wed", "THU", "FRI", "SAT"]


def items(low: int, high: int, extra: list[str]) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    ordered = st.tuples(number, number).map(lambda ends: (min(ends), max(ends)))
    step = st.integers(1, high - low + 1)
    return st.one_of(
        st.just("*"),
        number.map(str),
        ordered.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        step.filter(lambda size: size <= 7 or high > 7).map(lambda size: f"*/{size}"),
        st.tuples(number, step.filter(lambda size: size <= 7 or high > 7)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.tuples(ordered.filter(lambda ends: ends[0] < ends[1]), st.integers(1, 7)).map(
            lambda pair: f"{pair[0][0]}-{pair[0][1]}/{pair[1]}"
        ),
        *([st.sampled_from(extra)] if extra else []),
    )


def fields(low: int, high: int, extra: list[str] | None = None) -> st.SearchStrategy[str]:
    return st.lists(items(low, high, extra or []), min_size=1, max_size=3).map(",".join)


NTHS = [f"{day}#{nth}" for day in ("MON", "5", "7") for nth in (1, 3, 5)] + ["0L", "5L", "7L"]
FIVE = st.tuples(
    fields(0, 59),
    fields(0, 23),
    fields(1, 31, ["L", "LW"]),
    fields(1, 12, MONTHS),
    fields(0, 7, WEEKDAYS + NTHS),
)
EXPRESSIONS = st.one_of(FIVE, st.tuples(fields(0, 59), FIVE).map(lambda pair: (pair[0], *pair[1]))).map(" ".join)
ZONES = st.sampled_from(sorted(zone_names()))
SECONDS = st.integers(int(datetime(1880, 1, 1, tzinfo=UTC).timestamp()), LAST_SECOND)


@st.composite
def crons(draw: Callable[[st.SearchStrategy[str]], str]) -> Cron:
    expr, tz = draw(EXPRESSIONS), draw(ZONES)
    try:
        return duly.cron(expr, tz)
    except duly.InvalidInput as refusal:
        assume("no year has" not in refusal.reason)
        raise


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(crons(), SECONDS)
def test_the_next_fire_is_always_later_and_the_same_from_every_second_before_it(cadence: Cron, second: int) -> None:
    found = cadence.next_second(second)
    assume(found is not None)
    assert found is not None

    assert found > second
    for between in {second + (found - second) * part // 7 for part in range(7)} | {found - 1}:
        assert cadence.next_second(between) == found


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(crons(), SECONDS, st.integers(1, 10), st.integers(0, 10))
def test_splitting_a_span_changes_nothing(cadence: Cron, second: int, whole: int, first: int) -> None:
    expected = list(islice(cadence.seconds_after(second), whole))

    head = expected[: min(first, whole)]
    tail = islice(cadence.seconds_after(head[-1] if head else second), whole - len(head))

    assert head + list(tail) == expected
    assert expected == sorted(set(expected))


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(crons(), SECONDS, st.integers(1, 300), st.integers(0, 299), st.integers(-1, 0))
def test_a_count_is_what_stepping_would_have_counted(
    cadence: Cron, second: int, most: int, place: int, beside: int
) -> None:
    fires = list(islice(cadence.seconds_after(second), most))
    assume(fires)
    through = fires[min(place, len(fires) - 1)] + beside

    assert cadence.count(second, through) == sum(fire <= through for fire in fires)


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(crons(), SECONDS, st.lists(st.integers(0, 40 * 366 * 86_400), min_size=2, max_size=2))
def test_counts_of_parts_add_up_over_decades(cadence: Cron, start: int, lengths: list[int]) -> None:
    middle, end = (start + length for length in sorted(lengths))

    whole = cadence.count(start, end)

    assert cadence.count(start, middle) + cadence.count(middle, end) == whole
    assert cadence.count(end, start) == 0
    following = cadence.next_second(start)
    assert (whole > 0) == (following is not None and following <= end)


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(crons(), SECONDS)
def test_looking_back_finds_the_fire_that_looking_ahead_passed(cadence: Cron, second: int) -> None:
    found = cadence.last_second(second)

    if found is None:
        assert (cadence.next_second(FIRST_SECOND - 1) or LAST_SECOND + 1) > second
        return
    assert found <= second
    assert cadence.next_second(found - 1) == found
    assert (cadence.next_second(found) or LAST_SECOND + 1) > second
    for between in {found + (second - found) * part // 7 for part in range(7)}:
        assert cadence.last_second(between) == found


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(crons(), SECONDS, st.integers(0, 999_999))
def test_a_fraction_of_a_second_changes_nothing(cadence: Cron, second: int, microsecond: int) -> None:
    instant = datetime.fromtimestamp(second, UTC)

    assert cadence.next_after(instant.replace(microsecond=microsecond)) == cadence.next_after(instant)


@pytest.mark.req("DEC-003")
@settings(max_examples=300, deadline=None)
@given(crons(), st.integers(0, 4_000_000_000))
def test_the_fire_in_utc_is_the_first_second_the_expression_names(cadence: Cron, second: int) -> None:
    in_utc = duly.cron(cadence.expr)

    found = in_utc.next_after(datetime.fromtimestamp(second, UTC))

    assert found is not None
    plan, wall = Plan(cadence.expr), found.replace(tzinfo=None)
    assert plan.names(wall)
    earlier = range(max(second + 1, int(found.timestamp()) - 3000), int(found.timestamp()))
    assert not any(plan.names(datetime.fromtimestamp(at, UTC).replace(tzinfo=None)) for at in earlier)


@pytest.mark.req("CRON-02")
@settings(deadline=None)
@given(
    st.sampled_from([duly.cron("*/7 3 * * *", "Pacific/Chatham"), duly.every("7h"), duly.cron("@monthly")]),
    SECONDS,
)
def test_both_faces_of_a_cadence_agree(cadence: Cadence, second: int) -> None:
    instant = datetime.fromtimestamp(second, UTC)

    found = cadence.next_second(second)

    expected = None if found is None else datetime.fromtimestamp(found, UTC)
    assert cadence.next_after(instant) == next(cadence.after(instant), None) == expected


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize("host_zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_the_host_machines_zone_changes_nothing(host_zone: str) -> None:
    program = (
        "import duly, itertools, datetime as d;"
        "c = duly.cron('30 2 * * *', 'Europe/Berlin');"
        "print(*itertools.islice(c.after(d.datetime(2025, 3, 28, tzinfo=d.UTC)), 4))"
    )

    shown = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TZ": host_zone, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )

    fires = ["2025-03-28 01:30", "2025-03-29 01:30", "2025-03-30 01:00", "2025-03-31 00:30"]
    assert shown.stdout.split("+00:00")[:4] == [f"{' ' if n else ''}{at}:00" for n, at in enumerate(fires)]


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize("tz", ["UTC", "Pacific/Kiritimati", "Pacific/Niue", "Europe/Berlin"])
@pytest.mark.parametrize("expr", ["* * * * *", "*/30 * * * * *", "0 9 * * 1-5", "0 0 29 2 *", "59 23 31 12 *"])
def test_time_begins_and_ends_cleanly(expr: str, tz: str) -> None:
    cadence = duly.cron(expr, tz)
    eve = datetime(9999, 12, 30, tzinfo=UTC)

    last_fires = list(increasing(cadence.after(eve)))

    assert all(eve < fire for fire in last_fires)
    assert cadence.next_second(LAST_SECOND) is None
    assert cadence.next_after(datetime.max.replace(tzinfo=UTC)) is None
    first = cadence.next_second(FIRST_SECOND - 10**12)
    assert first is not None
    assert first >= FIRST_SECOND
    assert cadence.count(FIRST_SECOND - 10**12, first) == 1
    assert cadence.last_second(first) == first
    assert cadence.last_second(first - 1) is None
    assert cadence.last_second(FIRST_SECOND - 10**12) is None
    assert cadence.count(int(eve.timestamp()), LAST_SECOND + 10**12) == len(last_fires)
    very_last = cadence.last_second(LAST_SECOND + 10**12)
    assert very_last is not None
    assert cadence.next_second(very_last) is None
    assert not last_fires or very_last == last_fires[-1].timestamp()


def test_a_cadence_keeps_a_second_of_its_own_even_if_asked_in_another_zones_words() -> None:
    cadence = duly.cron("0 9 * * *", "Europe/Berlin")
    utc = datetime(2025, 7, 1, 6, 59, tzinfo=UTC)

    assert cadence.next_after(utc.astimezone(timezone(timedelta(hours=5)))) == datetime(2025, 7, 1, 7, tzinfo=UTC)
