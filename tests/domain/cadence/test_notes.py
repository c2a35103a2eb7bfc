"""Clock changes in words."""

from datetime import UTC, datetime, timedelta

import pytest

import duly
from duly.domain.cadence import NoteKind

YEAR = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


def notes(expr: str, tz: str) -> list[tuple[str, NoteKind, str]]:
    found = duly.cron(expr, tz).dst_notes(*YEAR)
    return [(f"{note.at:%m-%dT%H:%M}", note.kind, note.text) for note in found]


@pytest.mark.req("CRON-02")
def test_a_set_time_in_a_gap_is_noted_as_moved() -> None:
    assert notes("30 2 * * *", "America/New_York") == [
        (
            "03-09T07:00",
            NoteKind.MOVED,
            (
                "America/New_York: on 2025-03-09 the clock goes forward from 02:00 to 03:00. "
                "The fire planned for 02:30 runs at 03:00 instead."
            ),
        )
    ]


@pytest.mark.req("CRON-02")
def test_several_set_times_in_a_gap_are_noted_as_one_run() -> None:
    [(_, kind, text)] = notes("0,20,40 2,3 * 3 *", "Europe/Berlin")

    assert kind is NoteKind.MOVED
    assert text.endswith("The 3 fires planned from 02:00 to 02:40 run once at 03:00 instead, which is planned anyway.")


@pytest.mark.req("CRON-02")
def test_a_set_time_in_a_fold_is_noted_as_running_only_once() -> None:
    assert notes("30 1 * * *", "America/New_York") == [
        (
            "11-02T06:00",
            NoteKind.ONLY_ONCE,
            (
                "America/New_York: on 2025-11-02 the clock goes back from 02:00 to 01:00. "
                "The fire planned for 01:30 runs at the first pass only."
            ),
        )
    ]


@pytest.mark.req("CRON-02")
def test_a_wildcard_is_noted_as_skipped_and_as_running_twice() -> None:
    skipped, twice = notes("*/15 * * * *", "Australia/Lord_Howe")[::-1]

    assert skipped[1:] == (
        NoteKind.SKIPPED,
        (
            "Australia/Lord_Howe: on 2025-10-05 the clock goes forward from 02:00 to 02:30. "
            "The 2 fires planned from 02:00 to 02:15 are skipped."
        ),
    )
    assert twice[1:] == (
        NoteKind.TWICE,
        (
            "Australia/Lord_Howe: on 2025-04-06 the clock goes back from 02:00 to 01:30. "
            "The 2 fires planned from 01:30 to 01:45 run twice, once in each pass."
        ),
    )


@pytest.mark.req("CRON-02")
def test_a_day_struck_from_the_calendar_is_noted_as_skipped() -> None:
    [note] = duly.cron("0 9 * * *", "Pacific/Apia").dst_notes(
        datetime(2011, 12, 1, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC)
    )

    assert note.kind is NoteKind.SKIPPED
    assert note.text == (
        "Pacific/Apia: on 2011-12-30 the clock goes forward from 00:00 to 2011-12-31 00:00. "
        "The fire planned for 09:00 is skipped."
    )


@pytest.mark.req("CRON-02")
def test_a_change_that_touches_no_fire_is_not_noted() -> None:
    assert notes("0 9 * * *", "America/New_York") == []
    assert notes("30 2 * * *", "UTC") == []
    assert notes("30 2 * * 1", "Europe/Berlin") == []


def test_paces_and_single_instants_follow_no_wall_clock() -> None:
    assert duly.every("15m").dst_notes(*YEAR) == []
    assert duly.once(YEAR[0]).dst_notes(*YEAR) == []


def test_the_span_is_closed_at_its_start_and_open_at_its_end() -> None:
    change = datetime(2025, 3, 9, 7, tzinfo=UTC)
    cadence, second = duly.cron("30 2 * * *", "America/New_York"), timedelta(seconds=1)

    assert len(cadence.dst_notes(change, change + second)) == 1
    assert cadence.dst_notes(change - second, change) == []


@pytest.mark.parametrize(("start", "end"), [YEAR[::-1], (YEAR[0], YEAR[0] + timedelta(days=36_526))])
def test_a_span_backwards_or_too_long_is_refused(start: datetime, end: datetime) -> None:
    with pytest.raises(duly.InvalidInput) as refusal:
        duly.cron("@daily").dst_notes(start, end)

    assert refusal.value.field == "end"
