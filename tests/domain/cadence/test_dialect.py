"""The dialect: what each way of writing means."""

from datetime import UTC, datetime
from itertools import islice

import pytest

import duly


def fires(expr: str, after: str, count: int, tz: str = "UTC") -> list[str]:
    found = islice(duly.cron(expr, tz).after(datetime.fromisoformat(after)), count)
    return [f"{fire:%Y-%m-%d %H:%M:%S}".removesuffix(":00") for fire in found]


def days(expr: str, after: str, count: int) -> list[str]:
    return [fire.removesuffix(" 00:00") for fire in fires(expr, f"{after}T00:00Z", count)]


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize(
    ("macro", "expr"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
    ],
)
def test_a_macro_means_its_expression(macro: str, expr: str) -> None:
    zone = "America/New_York"

    assert fires(macro, "2025-10-31T00:00Z", 60, zone) == fires(expr, "2025-10-31T00:00Z", 60, zone)
    assert duly.cron(macro).explain() == duly.cron(expr).explain()


@pytest.mark.req("CRON-02")
def test_both_day_fields_restricted_means_either() -> None:
    assert days("0 0 13 * FRI", "2025-06-01", 4) == ["2025-06-06", "2025-06-13", "2025-06-20", "2025-06-27"]
    assert days("0 0 31 2 MON", "2025-02-01", 2) == ["2025-02-03", "2025-02-10"]


@pytest.mark.req("CRON-02")
def test_a_day_field_that_starts_with_a_star_means_both() -> None:
    assert days("0 0 */100,1-7 * MON", "2025-06-02", 3) == ["2025-07-07", "2025-08-04", "2025-09-01"]
    assert days("0 0 13 * */5", "2025-06-01", 3) == ["2025-06-13", "2025-07-13", "2026-02-13"]


@pytest.mark.req("CRON-02")
def test_sunday_is_0_and_7_and_a_name_in_any_case() -> None:
    sundays = days("0 0 * * 0", "2025-06-01", 9)

    assert sundays[0] == "2025-06-08"
    for spelling in ("7", "SUN", "sun", "7-7", "0,7", "SUN-SUN", "*/7"):
        assert days(f"0 0 * * {spelling}", "2025-06-01", 9) == sundays
    assert days("0 0 * * FRI-7", "2025-06-01", 3) == ["2025-06-06", "2025-06-07", "2025-06-08"]
    assert days("0 0 * * 0-7", "2025-06-01", 2) == ["2025-06-02", "2025-06-03"]


@pytest.mark.req("CRON-02")
def test_last_and_nth_days() -> None:
    assert days("0 0 L * *", "2024-01-31", 3) == ["2024-02-29", "2024-03-31", "2024-04-30"]
    assert days("0 0 LW * *", "2024-02-01", 4) == ["2024-02-29", "2024-03-29", "2024-04-30", "2024-05-31"]
    assert days("0 0 LW 8 *", "2025-01-01", 2) == ["2025-08-29", "2026-08-31"]
    assert days("0 0 15,L * *", "2025-02-01", 3) == ["2025-02-15", "2025-02-28", "2025-03-15"]
    assert days("0 0 * * 5L", "2025-01-01", 3) == ["2025-01-31", "2025-02-28", "2025-03-28"]
    assert days("0 0 * * MON#2,FRI#1", "2025-01-01", 3) == ["2025-01-03", "2025-01-13", "2025-02-07"]
    assert days("0 0 * 2 MON#5", "2025-01-01", 2) == ["2044-02-29", "2072-02-29"]


@pytest.mark.req("CRON-02")
def test_the_29th_of_february_waits_out_a_century_without_one() -> None:
    assert days("0 0 29 2 *", "2092-03-01", 2) == ["2096-02-29", "2104-02-29"]


@pytest.mark.req("CRON-02")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("5/20", "5,25,45"),
        ("10-30/10", "10,20,30"),
        ("41-59/24", "41"),
        ("5-5/10", "5"),
        ("7-07/2", "7"),
        ("*/20", "0,20,40"),
        ("*/60", "0"),
        ("*/100,7", "0,7"),
        ("0-59/90", "0"),
        ("007", "7"),
        ("1,1,1", "1"),
    ],
)
def test_ways_to_write_the_same_minutes(written: str, meant: str) -> None:
    after = "2025-01-01T00:00Z"

    assert fires(f"{written} * * * *", after, 20) == fires(f"{meant} * * * *", after, 20)


def test_a_stepped_range_of_one_name_is_that_name() -> None:
    assert days("0 0 1 MAR-3/2 *", "2025-01-01", 2) == ["2025-03-01", "2026-03-01"]
    assert days("0 0 * * TUE-2/2", "2025-01-01", 2) == ["2025-01-07", "2025-01-14"]


@pytest.mark.req("CRON-02")
def test_six_fields_put_seconds_first() -> None:
    assert fires("*/20 30 9 * * *", "2025-01-01T00:00Z", 4) == [
        "2025-01-01 09:30",
        "2025-01-01 09:30:20",
        "2025-01-01 09:30:40",
        "2025-01-02 09:30",
    ]


def test_spaces_and_tabs_separate_fields() -> None:
    assert duly.cron(" 0\t9  * * 1-5 ") == duly.cron("0 9 * * 1-5")


def test_the_longest_list_of_all_is_taken() -> None:
    def listed(low: int, high: int) -> str:
        return ",".join(str(number) for number in range(low, high + 1))

    fields = [listed(0, 59), listed(0, 59), listed(0, 23), listed(1, 31), listed(1, 12), listed(0, 7)]

    assert duly.cron(" ".join(fields)).next_second(0) == 1


def test_equal_cadences_are_one_value() -> None:
    first, second = duly.cron("0 9 * * *", "Asia/Tokyo"), duly.cron("0  9 * * *", "Asia/Tokyo")

    assert first == second
    assert hash(first) == hash(second)
    assert first != duly.cron("0 9 * * *")


def test_a_repeated_expression_is_read_once() -> None:
    assert duly.cron("13 9 * * *", "Asia/Tokyo") is duly.cron("13 9 * * *", "Asia/Tokyo")


def test_asking_does_not_change_the_answer_or_the_value() -> None:
    cadence = duly.cron("0 9 * * *", "Europe/Berlin")
    instants = [datetime(year, month, 1, tzinfo=UTC) for year in (1850, 2025, 1999, 9000) for month in (1, 7)]

    once = [cadence.next_after(instant) for instant in instants]
    again = [cadence.next_after(instant) for instant in reversed(instants)]

    assert once == again[::-1]
