"""The cron dialect: an expression's text, read by cronsim's parser, becomes bit masks."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from duly.domain.cadence.blame import InvalidCron, blame_field, blame_last, blame_step, blame_term
from duly.domain.cadence.days import Days

LONGEST_EXPRESSION = 1000
"""Longer than any expression that lists every value of every field."""

NAMES = ("second", "minute", "hour", "day of month", "month", "day of week")

_SIZES = (60, 60, 24, 31, 12, 7)
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_DAY_RULES_KEPT = 1024
_WORD = re.compile(r"[^ \t]+")
_STEPPED_RANGE = re.compile(r"([0-9A-Z]+-[0-9A-Z]+)/[0-9]+")
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Field:
    """One field as it was written, and where."""

    index: int
    text: str
    position: int

    @property
    def name(self) -> str:
        return NAMES[self.index]

    def terms(self) -> list["Field"]:
        """The field's list items, each at its own position."""
        found, position = [], self.position
        for text in self.text.split(","):
            found.append(Field(self.index, text, position))
            position += len(text) + 1
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """What a cron expression means, apart from its zone."""

    text: str
    seconds: int
    """Bit n for second n of the minute."""
    minutes: int
    """Bit n for minute n of the day: 1440 bits."""
    days: Days
    fixed: bool
    """Neither minute nor hour starts with `*`: a set time, not to be lost or doubled by a clock change."""


def parse(expr: str) -> Expression:
    """Reads an expression of 5 fields, 6 with seconds first, or a macro; refuses whatever can never fire."""
    fields = _fields(expr)
    for field in fields:
        blame_field(field)
    written = " ".join(field.text for field in fields)
    parsed = _read(fields)
    days = _days(parsed)
    if not days.ever():
        raise _impossible(fields)
    minute, hour = fields[-5].text, fields[-4].text
    hours_mask, minutes_mask = _mask(parsed.hours), _mask(parsed.minutes)
    return Expression(
        text=written,
        seconds=_mask(parsed.seconds),
        minutes=sum(minutes_mask << (60 * hour) for hour in range(24) if hours_mask >> hour & 1),
        days=days,
        fixed=not minute.startswith("*") and not hour.startswith("*"),
    )


def _fields(expr: str) -> list[Field]:
    if not isinstance(expr, str):
        raise InvalidCron("expr", f"must be a string such as '0 9 * * 1-5', not {type(expr).__name__}")
    if len(expr) > LONGEST_EXPRESSION:
        reason = f"is {len(expr)} characters long; the longest allowed is {LONGEST_EXPRESSION}"
        raise InvalidCron("expr", reason, position=LONGEST_EXPRESSION)
    words = [(word.group(), word.start()) for word in _WORD.finditer(expr)]
    if words and words[0][0].startswith("@"):
        words = _expand(words)
    if len(words) not in (5, 6):
        raise _wrong_count(expr, words)
    first = 6 - len(words)
    return [Field(first + n, text.upper() if text.isascii() else text, at) for n, (text, at) in enumerate(words)]


def _expand(words: list[tuple[str, int]]) -> list[tuple[str, int]]:
    macro, position = words[0]
    if macro.lower() == "@reboot":
        reason = "@reboot names no time, and a durable schedule does not start over with its machine"
        raise InvalidCron("expr", reason, position=position, fix="run the job once when your program starts")
    expanded = _MACROS.get(macro.lower()) if macro.isascii() else None
    if expanded is None:
        shown = macro if len(macro) <= 20 else macro[:20] + "…"
        known = f"the macros are {', '.join(sorted(_MACROS))}"
        raise InvalidCron("expr", f"{shown!r} is not a known macro", position=position, fix=known)
    if len(words) > 1:
        raise InvalidCron("expr", "nothing may follow a macro", position=words[1][1], fix=f"write {macro} alone")
    return [(word, position) for word in expanded.split()]


def _wrong_count(expr: str, words: list[tuple[str, int]]) -> InvalidCron:
    if not words:
        return InvalidCron("expr", "is empty", position=0, fix="write 5 fields, such as '0 9 * * 1-5'")
    reason = f"has {len(words)} field{'s' if len(words) > 1 else ''}; 5 are needed, or 6 with seconds first"
    if len(words) < 5:
        return InvalidCron("expr", reason, position=len(expr), fix="the order is minute hour day month weekday")
    return InvalidCron("expr", reason, position=words[6][1], fix="there is no field for the year")


def _read(fields: list[Field]) -> CronSim:
    """The library's verdict on the whole, or our words for the first item it does not take."""
    for field in fields:
        blame_step(field, _SIZES[field.index])
        if "L" in field.text:
            for term in field.terms():
                blame_last(term)
    try:
        return CronSim(" ".join(_plain(field) for field in fields), _ANY_TIME)
    except CronSimError:
        for field in fields:
            for term in field.terms():
                if not _takes(term):
                    raise blame_term(term) from None
    raise _impossible(fields)


def _plain(field: Field) -> str:
    """The field with `5-5/10` as `5-5`: cronsim would read it as `5/10`, which runs on to the field's end."""
    if "/" not in field.text:
        return field.text
    plain = []
    for term in field.terms():
        stepped = _STEPPED_RANGE.fullmatch(term.text)
        single = stepped is not None and _is_single(Field(field.index, stepped[1], field.position))
        plain.append(stepped[1] if stepped is not None and single else term.text)
    return ",".join(plain)


def _is_single(term: Field) -> bool:
    if not _takes(term):
        return False
    alone = _alone(term)
    sets = (alone.seconds, alone.minutes, alone.hours, alone.days, alone.months, alone.weekdays)
    return len(sets[term.index]) == 1


def _takes(term: Field) -> bool:
    try:
        _alone(term)
    except CronSimError:
        return False
    return term.text != ""


def _alone(term: Field) -> CronSim:
    """The library's reading of one item with every other field open."""
    fields = ["*"] * 6
    fields[term.index] = term.text
    return CronSim(" ".join(fields), _ANY_TIME)


def _days(parsed: CronSim) -> Days:
    weekdays = parsed.weekdays
    pairs = sorted({(item[0] % 7, item[1]) for item in weekdays if isinstance(item, tuple)})
    return _shared_days(
        dates=_mask({day for day in parsed.days if day > 0}) >> 1,
        last_date=CronSim.LAST in parsed.days,
        last_workday=CronSim.LAST_WEEKDAY in parsed.days,
        months=_mask(parsed.months),
        weekdays=_mask({item % 7 for item in weekdays if isinstance(item, int)}),
        nths=tuple((day, nth) for day, nth in pairs if nth != CronSim.LAST),
        lasts=tuple(day for day, nth in pairs if nth == CronSim.LAST),
        both=parsed.day_and,
    )


# Most schedules share few day rules, and with a rule the calendar blocks it has worked out.
_shared_days = lru_cache(_DAY_RULES_KEPT)(Days)


def _mask(values: set[int]) -> int:
    return sum(1 << value for value in values)


def _impossible(fields: list[Field]) -> InvalidCron:
    dates, months, weekdays = fields[-3:]
    reason = f"no year has a day {dates.text} in month {months.text}"
    if weekdays.text != "*":
        reason += f" that is also a weekday {weekdays.text}"
    return InvalidCron("day of month", reason, position=dates.position, fix="L is the last day of any month")
