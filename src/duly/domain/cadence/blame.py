"""Why a cron expression is refused, in words: the field, the place, the reason and the fix."""

import re
from typing import ClassVar, Protocol

from duly.domain.errors import InvalidInput

_BOUNDS = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day of month": (1, 31),
    "month": (1, 12),
    "day of week": (0, 7),
}
_VALUES = {
    "month": ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    "day of week": ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
}
_UNITS = {"second": "s", "minute": "m", "hour": "h", "day of month": "d", "day of week": "d"}
_LETTERS = re.compile(r"[0-9A-Z*/,#-]*")
_STEPPED_LAST = re.compile(r"[0-9]*LW?/")
_LONE_STEP = re.compile(r"(?:\*|[0-9A-Z]+)/([0-9]+)")


class InvalidCron(InvalidInput):
    """A cron expression that cannot mean anything, or can never fire."""

    code: ClassVar[str] = "invalid_cron"


class Written(Protocol):
    """A piece of an expression: its field's name, its text, and where it stands."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def position(self) -> int: ...


def blame_field(field: Written) -> None:
    """Refuses letters outside the dialect, which the library's `upper()` could turn into inside ones."""
    fitting = _LETTERS.match(field.text)
    end = fitting.end() if fitting else 0
    if end == len(field.text):
        return
    letter = field.text[end]
    fix = None
    if letter == "?":
        fix = "write * where other tools write ?"
    elif letter.isspace():
        fix = "separate fields by spaces or tabs"
    shown = repr(letter) if letter.isascii() else f"{letter!r} (U+{ord(letter):04X})"
    raise InvalidCron(field.name, f"{shown} has no meaning here", position=field.position + end, fix=fix)


def blame_step(field: Written, size: int) -> None:
    """Refuses `*/90` minutes, which would run every hour.

    In a list (`*/100,1-7`, the first-Monday idiom) or on a range (`41-59/24`) it is no mistake, and stays.
    """
    lone = _LONE_STEP.fullmatch(field.text)
    if lone is None or int(lone[1]) <= size:
        return
    unit = _UNITS.get(field.name)
    fix = f"for a steady pace use an interval: every('{int(lone[1])}{unit}')" if unit else "list the months"
    reason = f"the step {lone[1]} is larger than the field's range of {size}, so it would be no step at all"
    raise InvalidCron(field.name, reason, position=field.position + lone.start(1), fix=fix)


def blame_last(term: Written) -> None:
    """Refuses `L/2`, which the library takes, dropping the step."""
    if _STEPPED_LAST.match(term.text):
        raise InvalidCron(term.name, f"{term.text!r}: a last day takes no step", position=term.position)


def blame_term(term: Written) -> InvalidCron:
    """The reason why the library does not take this list item."""
    reason, fix = _reason(term.name, term.text)
    return InvalidCron(term.name, reason, position=term.position, fix=fix)


def _reason(name: str, text: str) -> tuple[str, str | None]:
    if not text:
        return "an item of the list is empty", "remove the extra comma"
    if "#" in text:
        return _reason_of_nth(name, text)
    base, slash, step = text.partition("/")
    if slash:
        return _reason_of_step(name, base, step)
    low, dash, high = text.partition("-")
    if dash and text != "-":
        return _reason_of_range(name, low, high)
    return _reason_of_value(name, text)


def _reason_of_nth(name: str, text: str) -> tuple[str, str | None]:
    weekday, _, nth = text.partition("#")
    if "/" in nth:
        return f"{text!r}: # takes no step", None
    if name != "day of week":
        return f"{text!r}: # is for the day of week only", None
    if nth.isdigit() and not 1 <= int(nth) <= 5:
        return f"{text!r}: a month has no weekday number {int(nth)}", "the number after # is 1 to 5"
    if nth.isdigit():
        return _reason_of_value(name, weekday)
    return f"{text!r}: a number must follow #", "MON#2 is the second Monday"


def _reason_of_step(name: str, base: str, step: str) -> tuple[str, str | None]:
    if not base:
        return "nothing stands before the /", f"write */{step}" if step.isdigit() else None
    if not step:
        return f"the step after '{base}/' is missing", None
    if not step.isdigit():
        return f"the step {step!r} is not a number", None
    if int(step) == 0:
        return "a step of 0 never gets anywhere", None
    return _reason(name, base)


def _reason_of_range(name: str, low: str, high: str) -> tuple[str, str | None]:
    if "-" in high:
        return f"the range '{low}-{high}' has more than two ends", None
    for end in (low, high):
        if end == "*":
            return "* is the whole range already", "write two numbers, or * alone"
        if not end:
            return f"the range '{low}-{high}' lacks an end", None
        if _value(name, end) is None:
            return _reason_of_value(name, end)
    fix = "wrap around with a list of two ranges"
    if name == "day of week" and _value(name, high) == 0:
        fix = f"Sunday is also 7: write {low}-7"
    return f"the range {low}-{high} runs backwards", fix


def _reason_of_value(name: str, text: str) -> tuple[str, str | None]:
    low, high = _BOUNDS[name]
    if text.isdigit():
        return f"{text} is outside {low}-{high}", None
    if "W" in text and text.strip("0123456789LW") == "" and name == "day of month":
        return f"{text!r}: the only workday form is LW", "LW is the last Monday-to-Friday day of the month"
    if text.endswith("L") and name == "day of week":
        return f"{text!r}: L must follow a weekday's number", "5L is the last Friday of the month"
    if "L" in text and text.strip("0123456789LW") == "":
        return f"{text!r}: L is for the day of month, or after a weekday's number", None
    names = _VALUES.get(name)
    fix = f"numbers are {low}-{high}" + (f", names {names[0]} to {names[-1]}" if names else "")
    return f"{text!r} is not a value of this field", fix


def _value(name: str, text: str) -> int | None:
    names = _VALUES.get(name, ())
    if text in names:
        return names.index(text) + _BOUNDS[name][0]
    low, high = _BOUNDS[name]
    return int(text) if text.isdigit() and low <= int(text) <= high else None
