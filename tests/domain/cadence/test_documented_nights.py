"""The table of clock changes in docs/time.md, row by row."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest

import duly
from tests.brute_force import increasing

ROWS = [
    ("America/New_York", "2025-03-09", "30 2 * * *", ["09 07:00"]),
    ("America/New_York", "2025-03-09", "*/30 2 * * *", []),
    ("America/New_York", "2025-11-02", "30 1 * * *", ["02 05:30"]),
    ("America/New_York", "2025-11-02", "*/30 1 * * *", ["02 05:00", "02 05:30", "02 06:00", "02 06:30"]),
    ("Europe/Berlin", "2025-03-30", "30 2 * * *", ["30 01:00"]),
    ("Europe/Berlin", "2025-03-30", "*/15 2 * * *", []),
    ("Europe/Berlin", "2025-10-26", "30 2 * * *", ["26 00:30"]),
    (
        "Europe/Berlin",
        "2025-10-26",
        "*/15 2 * * *",
        [f"26 {hour}:{minute}" for hour in ("00", "01") for minute in ("00", "15", "30", "45")],
    ),
    ("Australia/Lord_Howe", "2025-10-05", "15 2 * * *", ["04 15:30"]),
    ("Australia/Lord_Howe", "2025-10-05", "*/10 2 * * *", ["04 15:30", "04 15:40", "04 15:50"]),
    ("Australia/Lord_Howe", "2025-04-06", "45 1 * * *", ["05 14:45"]),
]


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize(("tz", "night", "expr", "expected"), ROWS)
def test_the_documented_nights_are_true(tz: str, night: str, expr: str, expected: list[str]) -> None:
    noon = datetime.fromisoformat(night).replace(hour=12, tzinfo=UTC)
    cadence = duly.cron(expr, tz)

    fires = takewhile(lambda fire: fire < noon, increasing(cadence.after(noon - timedelta(days=1))))

    assert [f"{fire:%d %H:%M}" for fire in fires] == expected


@pytest.mark.req("CRON-02")
def test_an_hourly_job_fires_every_hour_of_real_time() -> None:
    fires = duly.cron("0 * * * *", "America/New_York").after(datetime(2025, 11, 2, 3, 30, tzinfo=UTC))

    assert [next(fires).hour for _ in range(4)] == [4, 5, 6, 7]
