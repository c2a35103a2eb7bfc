"""Which fires of the past a backfill touches."""

from datetime import UTC, datetime, timedelta

import pytest

from duly import InvalidInput, cron, every
from duly.domain.backfills import Backfill, backfill_of
from duly.domain.instants import SECOND, Instant, instant_of

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
NOW = instant_of(NOON, field="now")


def fires(*moments: datetime) -> tuple[Instant, ...]:
    return tuple(instant_of(moment, field="fire") for moment in moments)


@pytest.mark.req("OWN-05")
def test_both_ends_of_the_span_count() -> None:
    hourly = every("1h")

    asked = backfill_of(hourly, NOON - timedelta(hours=2), NOON, cap=10, now=NOW)

    assert asked == Backfill(fires(NOON - timedelta(hours=2), NOON - timedelta(hours=1), NOON), 3, 10, last=NOW)


def test_a_span_between_two_seconds_holds_only_what_lies_in_it() -> None:
    start = NOON - timedelta(hours=1) + timedelta(microseconds=1)

    assert backfill_of(every("1h"), start, NOON - timedelta(microseconds=1), cap=10, now=NOW).count == 0


@pytest.mark.req("OWN-05")
def test_more_than_the_cap_are_counted_and_the_oldest_shown() -> None:
    asked = backfill_of(every("1s"), NOON - timedelta(days=3650), NOON, cap=2, now=NOW)

    assert asked.count == 3650 * 86_400 + 1
    assert [instant - asked.instants[0] for instant in asked.instants] == [0, SECOND]
    assert (asked.first, asked.last) == fires(NOON - timedelta(days=3650), NOON)


def test_fires_follow_the_wall_clock_of_their_zone() -> None:
    """On the night of the 29th the clock in Berlin leaps over 02:30, which then fires at 03:00."""
    asked = backfill_of(cron("30 2 * * *", "Europe/Berlin"), NOON - timedelta(days=1), NOON, cap=9, now=NOW)

    assert asked.instants == fires(datetime(2026, 3, 29, 1, tzinfo=UTC))


@pytest.mark.req("OWN-05", error=True)
@pytest.mark.parametrize(
    ("start", "end", "cap", "field"),
    [
        (NOON - timedelta(hours=1), NOON, 0, "cap"),
        (NOON - timedelta(hours=1), NOON, 10_001, "cap"),
        (NOON, NOON - timedelta(hours=1), 5, "end"),
        (NOON, NOON + timedelta(seconds=1), 5, "end"),
        (NOON.replace(tzinfo=None), NOON, 5, "start"),
        (NOON, "noon", 5, "end"),
    ],
)
def test_what_is_no_span_of_the_past_is_refused(start: datetime, end: datetime, cap: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        backfill_of(every("1h"), start, end, cap=cap, now=NOW)

    assert refused.value.field == field


@pytest.mark.req("OWN-05", error=True)
@pytest.mark.parametrize(("count", "field"), [(0, "start"), (6, "cap")])
def test_nothing_and_too_much_are_refused_before_anything_runs(count: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Backfill((), count, 5).require_fit()

    assert refused.value.field == field
