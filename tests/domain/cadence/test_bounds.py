"""Fires between two instants, both of which count."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest

from duly import InvalidInput, cron, every

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAILY = cron("0 9 * * *")


@pytest.mark.req("CRON-02")
def test_a_fire_at_the_start_and_one_at_the_end_count() -> None:
    bounded = DAILY.within(start_at=NINE, end_at=NINE + timedelta(days=2))

    fires = list(bounded.after(NINE - timedelta(days=30)))

    assert fires == [NINE, NINE + timedelta(days=1), NINE + timedelta(days=2)]


def test_the_start_is_not_due_again_after_itself() -> None:
    bounded = DAILY.within(start_at=NINE)

    assert bounded.next_after(NINE) == NINE + timedelta(days=1)


def test_a_fraction_of_a_second_after_a_fire_excludes_it() -> None:
    half_past = NINE + timedelta(microseconds=1)

    assert DAILY.within(start_at=half_past).next_after(NINE - timedelta(days=9)) == NINE + timedelta(days=1)
    assert DAILY.within(end_at=half_past).next_after(NINE - timedelta(seconds=1)) == NINE


def test_nothing_fires_after_the_end() -> None:
    assert DAILY.within(end_at=NINE).next_after(NINE) is None
    assert list(every("1h").within(end_at=NINE).after(NINE)) == []


def test_without_bounds_nothing_changes() -> None:
    assert list(islice(DAILY.within().after(NINE), 5)) == list(islice(DAILY.after(NINE), 5))


def test_bounds_are_part_of_the_words_and_of_the_value() -> None:
    bounded = DAILY.within(start_at=NINE, end_at=NINE)

    assert bounded.explain() == f"{DAILY.explain()}, from 2026-03-02 09:00:00 UTC, until 2026-03-02 09:00:00 UTC"
    assert bounded == cron("0 9 * * *").within(start_at=NINE, end_at=NINE)


def test_clock_changes_outside_the_bounds_are_not_noted() -> None:
    start, end = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    nightly = cron("30 2 * * *", "America/New_York")

    notes = nightly.within(end_at=datetime(2025, 6, 1, tzinfo=UTC)).dst_notes(start, end)

    assert [note.at.month for note in notes] == [3]


@pytest.mark.req("CRON-02", error=True)
@pytest.mark.parametrize(
    ("bounds", "field"),
    [
        ({"start_at": NINE, "end_at": NINE - timedelta(seconds=1)}, "end_at"),
        ({"start_at": datetime(2026, 3, 2)}, "start_at"),  # noqa: DTZ001 - naive on purpose
        ({"end_at": "tomorrow"}, "end_at"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(bounds: dict[str, datetime], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        DAILY.within(**bounds)

    assert refused.value.field == field


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize(
    ("tz", "first"),
    [
        ("UTC", datetime(1, 1, 1, tzinfo=UTC)),
        ("Etc/GMT-14", datetime(1, 1, 1, tzinfo=UTC)),
        ("Etc/GMT+12", datetime(1, 1, 1, tzinfo=UTC)),
        ("Europe/Berlin", datetime(1, 1, 1, 0, 0, 32, tzinfo=UTC)),
    ],
)
def test_after_an_instant_before_the_year_1_comes_the_first_fire_that_can_be_named(tz: str, first: datetime) -> None:
    before = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23, minutes=59)))

    # Twice: what the first search has found out about the zone serves the second.
    assert [cron("* * * * *", tz).next_after(before) for _ in range(2)] == [first, first]
