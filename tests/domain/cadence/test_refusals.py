"""Bad input is refused by name, place and reason, whatever its type and size."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duly
from duly.domain.cadence import InvalidCron, InvalidInterval, InvalidZone, zone_names

DAY_FIELDS = "day of month"


@pytest.mark.req("CRON-02", error=True)
@pytest.mark.parametrize(
    ("expr", "field", "position", "words"),
    [
        ("61 * * * *", "minute", 0, "61 is outside 0-59"),
        ("* 24 * * *", "hour", 2, "24 is outside 0-23"),
        ("* * 0 * *", DAY_FIELDS, 4, "0 is outside 1-31"),
        ("* * * 13 *", "month", 6, "13 is outside 1-12"),
        ("* * * * 8", "day of week", 8, "8 is outside 0-7"),
        ("60 * * * * *", "second", 0, "60 is outside 0-59"),
        ("0-10000000 * * * *", "minute", 0, "10000000 is outside 0-59"),
        ("0 9,25 * * *", "hour", 4, "25 is outside 0-23"),
        ("1,,2 * * * *", "minute", 2, "an item of the list is empty"),
        ("* , * * *", "hour", 2, "an item of the list is empty"),
        ("*/0 * * * *", "minute", 0, "a step of 0"),
        ("*/ * * * *", "minute", 0, "the step after '*/' is missing"),
        ("/5 * * * *", "minute", 0, "nothing stands before the /"),
        ("*/x * * * *", "minute", 0, "the step 'X' is not a number"),
        ("*/2/3 * * * *", "minute", 0, "the step '2/3' is not a number"),
        ("5-3 * * * *", "minute", 0, "the range 5-3 runs backwards"),
        ("* * * * FRI-SUN", "day of week", 8, "write FRI-7"),
        ("* * * * 1-5-7", "day of week", 8, "more than two ends"),
        ("*-5 * * * *", "minute", 0, "* is the whole range already"),
        ("2- * * * *", "minute", 0, "lacks an end"),
        (
            "* * * FOO *",
            "month",
            6,
            "'FOO' is not a value of this field (numbers are 1-12, names JAN to DEC)",
        ),
        ("* * ? * *", DAY_FIELDS, 4, "write * where other tools write ?"),
        ("* * 15W * *", DAY_FIELDS, 4, "the only workday form is LW"),
        ("* * L/2 * *", DAY_FIELDS, 4, "a last day takes no step"),
        ("* * 1,LW/2 * *", DAY_FIELDS, 6, "a last day takes no step"),
        ("* * * * 5L/2", "day of week", 8, "a last day takes no step"),
        ("* * * * MON#2/3", "day of week", 8, "# takes no step"),
        ("* * * * MON#6", "day of week", 8, "a month has no weekday number 6"),
        ("* * * * MON#", "day of week", 8, "a number must follow #"),
        ("* 5#3 * * *", "hour", 2, "# is for the day of week only"),
        ("L * * * *", "minute", 0, "L is for the day of month"),
        ("* * * * MONL", "day of week", 8, "L must follow a weekday's number"),
        ("* * * * ²L", "day of week", 8, "U+00B2"),
        ("* * * * ſun", "day of week", 8, "U+017F"),
        ("* * * * FRı", "day of week", 10, "U+0131"),
        ("* * * * ＭＯＮ", "day of week", 8, "U+FF2D"),
        ("* * * * МОN", "day of week", 8, "U+041C"),
        ("٣ * * * *", "minute", 0, "U+0663"),
        ("0\x00 * * * *", "minute", 1, r"'\x00' has no meaning"),
        ("0 9 * * *\n", "day of week", 9, "separate fields by spaces or tabs"),
        ("0\x1c9 * * * *", "minute", 1, r"'\x1c' has no meaning"),
        ("*/90 * * * *", "minute", 2, "every('90m')"),
        ("*/90 * * * * *", "second", 2, "every('90s')"),
        ("0 */36 * * *", "hour", 4, "every('36h')"),
        ("0 0 */45 * *", DAY_FIELDS, 6, "every('45d')"),
        ("0 0 * */13 *", "month", 8, "larger than the field's range of 12"),
        ("0 0 * * */8", "day of week", 10, "every('8d')"),
        ("0/90 * * * *", "minute", 2, "every('90m')"),
        ("0 0 30 2 *", DAY_FIELDS, 4, "no year has a day 30 in month 2"),
        ("0 0 31 4,6 *", DAY_FIELDS, 4, "no year has a day 31 in month 4,6"),
        ("0 0 0 31 feb *", DAY_FIELDS, 6, "no year has a day 31 in month FEB"),
        ("0 0 31 2 */2", DAY_FIELDS, 4, "that is also a weekday */2"),
        ("0 0 */30 * MON#2", DAY_FIELDS, 4, "that is also a weekday MON#2"),
        ("* * * *", "expr", 7, "has 4 fields; 5 are needed, or 6 with seconds first"),
        ("* * * * * * 2030", "expr", 12, "there is no field for the year"),
        ("", "expr", 0, "is empty"),
        (" \t ", "expr", 0, "is empty"),
        ("@reboot", "expr", 0, "names no time"),
        ("@fortnightly", "expr", 0, "the macros are @annually, @daily"),
        ("@daily 5", "expr", 7, "nothing may follow a macro"),
        ("@ſunday", "expr", 0, "is not a known macro"),
        ("*" * 1001, "expr", 1000, "is 1001 characters long"),
        ("0 9 * * *" + " " * 1_000_000, "expr", 1000, "is 1000009 characters long"),
    ],
)
def test_a_bad_expression_is_refused_with_field_place_and_reason(
    expr: str, field: str, position: int, words: str
) -> None:
    with pytest.raises(InvalidCron) as refusal:
        duly.cron(expr)

    assert (refusal.value.field, refusal.value.position) == (field, position)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(f"{field}, position {position}: ")
    assert len(str(refusal.value)) < 400


@pytest.mark.req("CRON-02", error=True)
@pytest.mark.parametrize("expr", [None, 5, 1.5, True, b"* * * * *", ["*"], object(), {"*": 1}])
def test_an_expression_that_is_no_text_is_refused(expr: Any) -> None:
    with pytest.raises(InvalidCron, match="expr: must be a string"):
        duly.cron(expr)


@pytest.mark.req("CRON-02", error=True)
@pytest.mark.parametrize(
    ("tz", "words"),
    [
        ("../../etc/passwd", "is not a zone of the tz database"),
        ("/etc/localtime", "is not a zone of the tz database"),
        ("Factory", "is not a zone of the tz database"),
        ("posixrules", "is not a zone of the tz database"),
        ("localtime", "is not a zone of the tz database"),
        ("right/Europe/Berlin", "is not a zone of the tz database"),
        ("posix/Europe/Berlin", "is not a zone of the tz database"),
        ("Europe", "is not a zone of the tz database"),
        ("zone.tab", "is not a zone of the tz database"),
        ("utc", "did you mean 'UTC'?"),
        ("CEST", "names look like 'Europe/Berlin'"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("Europe/Berlin ", "did you mean 'Europe/Berlin'?"),
        ("Europe/Lond\u043en", "position 11: holds '\\u043e' (U+043E)"),
        ("Europe/Berlin\x00", "position 13: holds '\\x00'"),
        ("", "tz: is empty"),
        ("A" * 1_000_000, "is longer than any zone's name"),
        (None, "tz: must be a zone name such as 'Europe/Berlin', not NoneType"),
        (5, "not int"),
        (b"UTC", "not bytes"),
        (["UTC"], "not list"),
        (UTC, "not timezone"),
    ],
)
def test_a_zone_outside_the_tz_database_is_refused(tz: Any, words: str) -> None:
    with pytest.raises(InvalidZone) as refusal:
        duly.cron("0 9 * * *", tz)

    assert refusal.value.field == "tz"
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ("", "'' is not a duration"),
        ("15", "'15' is not a duration"),
        ("m", "'m' is not a duration"),
        ("1.5h", "'1.5h' is not a duration"),
        ("-5m", "'-5m' is not a duration"),
        ("5m1h", "'5m1h' is not a duration"),
        ("5m ", "'5m ' is not a duration"),
        ("٣m", "'٣m' is not a duration"),
        ("9" * 1_000_000 + "s", "is not a duration"),
        ("0s", "at least 1 second"),
        ("367d", "at most 366 days"),
        ("9999999999999999999999s", "at most 366 days"),
        (15, "has no unit (write '15s' for seconds, '15m' for minutes)"),
        (0, "has no unit (write '15m'"),
        (-60, "has no unit (write '15m'"),
        (10**400, "has no unit (write '15m'"),
        (timedelta(seconds=-1), "at least 1 second"),
        (timedelta(milliseconds=1500), "must be whole seconds"),
        (timedelta.max, "must be whole seconds"),
        (True, "not bool"),
        (60.0, "not float"),
        (float("nan"), "not float"),
        (None, "not NoneType"),
        (b"15m", "not bytes"),
    ],
)
def test_a_bad_interval_is_refused(interval: Any, words: str) -> None:
    with pytest.raises(InvalidInterval) as refusal:
        duly.every(interval)

    assert refusal.value.field == "interval"
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 200


def test_a_bad_interval_names_the_letter_where_it_goes_wrong() -> None:
    with pytest.raises(InvalidInterval) as refusal:
        duly.every("1h5x")

    assert refusal.value.position == 2


NAIVE = datetime(2025, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("instant", "words"),
    [
        (NAIVE, "has no time zone"),
        ("2025-01-01T00:00:00Z", "must be a datetime, not str"),
        (1_700_000_000, "must be a datetime, not int"),
        (None, "must be a datetime, not NoneType"),
        (NAIVE.date(), "must be a datetime, not date"),
    ],
)
def test_what_names_no_instant_is_refused_wherever_an_instant_is_asked_for(instant: Any, words: str) -> None:
    cadence = duly.cron("0 9 * * *")
    late = datetime(2026, 1, 1, tzinfo=UTC)
    asks: dict[str, Callable[[], object]] = {
        "at": lambda: duly.once(instant),
        "instant": lambda: cadence.after(instant),
        "start": lambda: cadence.dst_notes(instant, late),
        "end": lambda: duly.every("1h").dst_notes(late, instant),
    }
    if instant is not None:
        asks["anchor"] = lambda: duly.every("1h", anchor=instant)
    for field, ask in asks.items():
        with pytest.raises(duly.InvalidInput) as refusal:
            ask()

        assert refusal.value.field == field
        assert words in refusal.value.reason
    with pytest.raises(duly.InvalidInput):
        cadence.next_after(instant)


def test_a_fire_within_a_second_is_refused() -> None:
    fraction = datetime(2025, 1, 1, microsecond=5, tzinfo=UTC)

    with pytest.raises(duly.InvalidInput, match="at: must be a whole second"):
        duly.once(fraction)
    with pytest.raises(duly.InvalidInput, match="anchor: must be a whole second"):
        duly.every("1h", anchor=fraction)


def test_a_refusal_is_a_value_error_with_a_code_of_its_own() -> None:
    codes = {InvalidCron: "invalid_cron", InvalidZone: "invalid_zone", InvalidInterval: "invalid_interval"}
    for kind, code in codes.items():
        assert issubclass(kind, duly.InvalidInput)
        assert issubclass(kind, ValueError)
        assert kind.code == code


@pytest.mark.req("CRON-02", error=True)
@settings(deadline=None)
@given(st.one_of(st.text(), st.text("0123456789*/,-#LW?@ \tMONJASUN", max_size=30)))
def test_any_text_is_taken_or_refused_at_a_place_inside_it(text: str) -> None:
    refusal = refusal_of(lambda: duly.cron(text))

    if refusal is None:
        assert duly.cron(text).explain()
        assert duly.cron(text).next_second(0) is not None
    else:
        assert refusal.position is not None
        assert 0 <= refusal.position <= len(text)


@settings(deadline=None)
@given(st.text())
def test_any_zone_text_is_taken_or_refused(text: str) -> None:
    refusal = refusal_of(lambda: duly.cron("@daily", text))

    assert (refusal is None) == (text in zone_names())
    assert refusal is None or refusal.field == "tz"


def refusal_of(ask: Callable[[], object]) -> duly.InvalidInput | None:
    try:
        ask()
    except duly.InvalidInput as refusal:
        return refusal
    return None


def test_a_refused_expression_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(InvalidCron):
            duly.cron("61 * * * *")
