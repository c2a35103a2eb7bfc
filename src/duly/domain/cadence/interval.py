"""A steady pace: instants that lie a whole number of periods after an anchor."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from duly.domain.cadence.cadence import Cadence
from duly.domain.cadence.instants import DAY, EPOCH, LAST_SECOND, utc_of, whole_second_of
from duly.domain.cadence.words import duration_in_letters, duration_in_words
from duly.domain.errors import InvalidInput

LONGEST_PERIOD = 366 * DAY
"""A longer pace is a date, and dates are a cron expression's business."""

_WRITTEN = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_SIZES = (7 * DAY, DAY, 3600, 60, 1)
_LONGEST_TEXT = 40
_HINT = "write '15m', '90s', '1h30m' or '2d'"


class InvalidInterval(InvalidInput):
    code: ClassVar[str] = "invalid_interval"


@dataclass(frozen=True, slots=True, repr=False)
class Interval(Cadence):
    """Fires at the anchor and every `seconds` after it, never before; build it with `every()`.

    Each fire is counted from the anchor, so late runs, restarts and clock changes cannot make it drift.
    """

    seconds: int
    anchor_second: int = 0

    @property
    def anchor(self) -> datetime:
        return utc_of(self.anchor_second)

    def next_second(self, after: int) -> int | None:
        if after < self.anchor_second:
            return self.anchor_second
        found = after + self.seconds - (after - self.anchor_second) % self.seconds
        return found if found <= LAST_SECOND else None

    def last_second(self, through: int) -> int | None:
        through = min(through, LAST_SECOND)
        return None if through < self.anchor_second else through - (through - self.anchor_second) % self.seconds

    def count(self, after: int, through: int) -> int:
        return max(self._count_until(through) - self._count_until(after), 0)

    def explain(self) -> str:
        words = f"Every {duration_in_words(self.seconds)}"
        return words if self.anchor_second == 0 else f"{words}, from {self.anchor:%Y-%m-%d %H:%M:%S} UTC"

    def _count_until(self, through: int) -> int:
        since_anchor = min(through, LAST_SECOND) - self.anchor_second
        return 0 if since_anchor < 0 else since_anchor // self.seconds + 1

    def __repr__(self) -> str:
        period = repr(duration_in_letters(self.seconds))
        if self.anchor_second == 0:
            return f"every({period})"
        return f"every({period}, anchor=datetime.fromisoformat({self.anchor.isoformat()!r}))"


def every(interval: str | timedelta, anchor: datetime | None = None) -> Interval:
    """A cadence that fires at the anchor and every interval after it.

    The interval is text such as "15m" or "1h30m", or a timedelta; from 1 second to 366 days. A bare number is refused:
    it does not say of what.
    Without an anchor it counts from 1970-01-01T00:00Z, so "15m" fires on UTC's quarter hours.
    With an anchor in the future, the anchor itself is the first fire.
    """
    seconds = _seconds(interval)
    if not 1 <= seconds <= LONGEST_PERIOD:
        raise InvalidInterval("interval", "must be at least 1 second and at most 366 days", fix=_HINT)
    return Interval(seconds, whole_second_of("anchor", EPOCH if anchor is None else anchor))


def _seconds(interval: object) -> int:
    if isinstance(interval, str):
        return _read(interval)
    if isinstance(interval, timedelta):
        if interval.microseconds:
            raise InvalidInterval("interval", "must be whole seconds", fix="round the timedelta")
        return interval.days * DAY + interval.seconds
    if isinstance(interval, int) and not isinstance(interval, bool):
        said = f"write '{interval}s' for seconds, '{interval}m' for minutes" if 0 < interval < LONGEST_PERIOD else _HINT
        raise InvalidInterval("interval", "is a bare number, which has no unit", fix=said)
    kind = type(interval).__name__
    raise InvalidInterval("interval", f"must be text or a timedelta, not {kind}", fix=_HINT)


def _read(text: str) -> int:
    written = _WRITTEN.match(text[:_LONGEST_TEXT])
    end = written.end() if written else 0
    if written is None or not text or end != len(text):
        shown = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"
        raise InvalidInterval("interval", f"{shown!r} is not a duration", position=end, fix=_HINT)
    return sum(int(count) * size for count, size in zip(written.groups(), _SIZES, strict=True) if count)
