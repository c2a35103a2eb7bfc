"""Durations as people write them: "90s", "1h30m", "500ms", or a timedelta."""

import re
from datetime import timedelta

from duly.domain.errors import InvalidInput

_WRITTEN = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_SIZES_MS = (7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1_000, 1)
_LONGEST_TEXT = 40
_HINT = "write '30s', '10m', '1h30m' or '500ms'"

Duration = str | timedelta


def ms_of(duration: Duration, *, field: str, least: int, most: int) -> int:
    """Whole milliseconds. A bare number is refused: it does not say of what."""
    ms = _ms(duration, field)
    if not least <= ms <= most:
        raise InvalidInput(field, f"{ms} ms is out of range", fix=f"use {least} to {most} ms; {_HINT}")
    return ms


def _ms(duration: object, field: str) -> int:
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    if not isinstance(duration, str):
        raise InvalidInput(field, f"{str(duration)[:40]!r} has no unit", fix=_HINT)
    written = _WRITTEN.fullmatch(duration) if 0 < len(duration) <= _LONGEST_TEXT else None
    if written is None:
        raise InvalidInput(field, f"{duration[:_LONGEST_TEXT]!r} is not a duration", fix=_HINT)
    return sum(int(count) * size for count, size in zip(written.groups(), _SIZES_MS, strict=True) if count)
