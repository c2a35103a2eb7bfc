"""Cadences in words."""

import re

from cronsim.explain import explain

from duly.domain.cadence.instants import DAY

_ORDINAL = re.compile(r"\b(\d*)(1|2|3)th\b")
_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}
_UNITS = ((7 * DAY, "week"), (DAY, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_LETTERS = ((DAY, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def cron_in_words(text: str, zone: str) -> str:
    return f"{_ORDINAL.sub(_ordinal, explain(text))}, {zone}"


def duration_in_words(seconds: int) -> str:
    """5400 as `1 hour 30 minutes`."""
    words = []
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            words.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(words)


def duration_in_letters(seconds: int) -> str:
    """5400 as `1h30m`, the form intervals are written in."""
    letters = ""
    for size, letter in _LETTERS:
        count, seconds = divmod(seconds, size)
        if count:
            letters += f"{count}{letter}"
    return letters


def _ordinal(found: re.Match[str]) -> str:
    # The library says 21th and 31th; teens keep their th.
    ending = "th" if found[1].endswith("1") else _ENDINGS[found[2]]
    return f"{found[1]}{found[2]}{ending}"
