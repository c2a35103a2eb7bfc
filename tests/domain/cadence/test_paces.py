"""Intervals and single instants."""

import pickle
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duly
from duly.domain.cadence import Cadence, Interval

NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        ("15m", 900),
        ("90s", 90),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("366d", 31_622_400),
        ("1d2h3m4s", 93_784),
        (timedelta(minutes=5), 300),
    ],
)
def test_an_interval_is_written_in_several_ways(interval: str | timedelta, seconds: int) -> None:
    assert duly.every(interval).seconds == seconds


def test_without_an_anchor_fires_fall_on_round_utc_times() -> None:
    fires = islice(duly.every("15m").after(NEW_YEAR + timedelta(minutes=7)), 2)

    assert list(fires) == [NEW_YEAR + timedelta(minutes=15), NEW_YEAR + timedelta(minutes=30)]


def test_a_future_anchor_is_the_first_fire() -> None:
    anchor = NEW_YEAR + timedelta(hours=9)

    fires = islice(duly.every("1d", anchor=anchor).after(NEW_YEAR - timedelta(days=30)), 2)

    assert list(fires) == [anchor, anchor + timedelta(days=1)]


def test_an_anchor_is_an_instant_in_whatever_zone_it_is_given() -> None:
    utc = NEW_YEAR + timedelta(hours=9)

    assert duly.every("7h", anchor=utc.astimezone(timezone(timedelta(hours=5)))) == duly.every("7h", anchor=utc)


@settings(deadline=None)
@given(st.integers(1, 31_622_400), st.integers(-(10**10), 10**10), st.integers(-(10**11), 10**11))
def test_an_interval_never_drifts_from_its_anchor(seconds: int, anchor: int, after: int) -> None:
    found = Interval(seconds, anchor).next_second(after)

    assert found is not None
    assert found > after
    assert found >= anchor
    assert (found - anchor) % seconds == 0
    assert found - seconds <= after or found == anchor


def test_intervals_end_with_the_year_9999() -> None:
    last = datetime(9999, 12, 31, 23, 45, tzinfo=UTC)

    assert list(duly.every("15m").after(last - timedelta(minutes=15))) == [last]


def test_once_fires_once() -> None:
    cadence = duly.once(NEW_YEAR)

    assert list(cadence.after(NEW_YEAR - timedelta(microseconds=1))) == [NEW_YEAR]
    assert list(cadence.after(NEW_YEAR)) == []
    assert cadence.next_after(NEW_YEAR) is None
    assert cadence.at == NEW_YEAR


@pytest.mark.parametrize(
    ("cadence", "words"),
    [
        (duly.every("15m"), "Every 15 minutes"),
        (duly.every("1h30m"), "Every 1 hour 30 minutes"),
        (duly.every("1d", anchor=NEW_YEAR), "Every 1 day, from 2025-01-01 00:00:00 UTC"),
        (duly.once(NEW_YEAR), "Once, at 2025-01-01 00:00:00 UTC"),
        (duly.cron("0 9 * * 1-5", "Europe/Berlin"), "At 09:00 on Monday through Friday, Europe/Berlin"),
        (duly.cron("@hourly"), "At the start of every hour, UTC"),
        (duly.cron("0 0 21,31 * *"), "At 00:00 on the 21st and the 31st day of month, UTC"),
        (duly.cron("0 0 12 * *"), "At 00:00 on the 12th day of every month, UTC"),
        (duly.cron("*/10 * * * * *", "Asia/Tokyo"), "Every 10th second of every minute, Asia/Tokyo"),
    ],
)
def test_a_cadence_explains_itself(cadence: Cadence, words: str) -> None:
    assert cadence.explain() == words


CADENCES = [
    duly.cron("0 9 * * 1-5"),
    duly.cron("@daily", "Asia/Tokyo"),
    duly.every("1h30m"),
    duly.every("2d", anchor=NEW_YEAR),
    duly.once(NEW_YEAR),
]


@pytest.mark.parametrize("cadence", CADENCES, ids=repr)
def test_a_cadences_repr_builds_it_again(cadence: Cadence) -> None:
    names = {"cron": duly.cron, "every": duly.every, "once": duly.once, "datetime": datetime}

    assert eval(repr(cadence), names) == cadence  # noqa: S307


@pytest.mark.parametrize("cadence", CADENCES, ids=repr)
def test_a_cadence_survives_pickling(cadence: Cadence) -> None:
    assert pickle.loads(pickle.dumps(cadence)) == cadence  # noqa: S301
