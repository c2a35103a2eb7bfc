"""Wall clocks: the zones of the tz database as spans of constant offset from UTC."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import ClassVar, NamedTuple
from zoneinfo import ZoneInfo

from tzdata import IANA_VERSION

from duly.domain.cadence.instants import DAY, FIRST_SECOND, LAST_SECOND
from duly.domain.errors import InvalidInput

TZ_VERSION: str = IANA_VERSION

LARGEST_DST_SHIFT = 3 * 3600
"""A clock change larger than this is no daylight saving but a zone changing its date."""

_NOT_PLACES = frozenset({"Factory", "localtime", "posixrules"})
_LONGEST_NAME = 64
_CHUNK_BITS = 25  # about 388 days: a year, found by a shift
_CHUNKS_KEPT = 128
# No zone has ever changed its clock twice within a week, and a test holds the tz database to that.
_PROBE_EVERY = 3 * DAY


class InvalidZone(InvalidInput):
    code: ClassVar[str] = "invalid_zone"


class Span(NamedTuple):
    """A stretch of UTC seconds in which the wall clock keeps one offset."""

    start: int
    end: int
    offset: int
    shift: int
    """How far the wall clock jumped at `start`: positive for a gap, negative for a fold, 0 for neither."""
    floor: int
    """The wall clock's furthest reading before `start`: in a fold, what lies below has been shown already."""

    @property
    def correction(self) -> bool:
        return abs(self.shift) > LARGEST_DST_SHIFT


class Zone:
    """One zone's spans, surveyed a year at a time as they are asked for."""

    __slots__ = ("_always", "_chunks", "_info", "name")

    def __init__(self, name: str, info: ZoneInfo) -> None:
        self.name = name
        self._info = info
        self._chunks: dict[int, tuple[Span, ...]] = {}
        fixed = info.utcoffset(None)  # None unless the zone has one offset for ever, as UTC has
        self._always = None if fixed is None else _always(_seconds(fixed))

    def span_at(self, second: int) -> Span:
        """The span that contains the second; long ones are cut at the survey's borders, with shift 0."""
        if self._always is not None:
            return self._always
        chunk = second >> _CHUNK_BITS
        spans = self._chunks.get(chunk)
        if spans is None:
            spans = self._survey(chunk)
        for span in spans:
            if second < span.end:
                return span
        raise AssertionError("a chunk's spans reach its end")

    def changes(self, start: int, end: int) -> Iterator[Span]:
        """The spans that begin with a clock change in [start, end)."""
        span = self.span_at(start)
        if span.shift and span.start == start:
            yield span
        while span.end < end:
            span = self.span_at(span.end)
            if span.shift:
                yield span

    def _survey(self, chunk: int) -> tuple[Span, ...]:
        if len(self._chunks) >= _CHUNKS_KEPT:
            self._chunks.clear()
        spans = self._spans_between(chunk << _CHUNK_BITS, (chunk + 1) << _CHUNK_BITS)
        self._chunks[chunk] = spans
        return spans

    def _spans_between(self, start: int, end: int) -> tuple[Span, ...]:
        offset = self._offset(start)
        spans = [Span(start, end, offset, 0, start + offset)]
        # Probing from before the start shows a fold whose second pass reaches across it.
        for at, before, after in self._changes_between(start - _PROBE_EVERY, end - 1):
            shift = after - before
            floor = at + before if -LARGEST_DST_SHIFT <= shift < 0 else at + after
            if at < start:
                spans[0] = spans[0]._replace(floor=floor)
            else:
                spans[-1] = spans[-1]._replace(end=at)
                spans.append(Span(at, end, after, shift, floor))
        return tuple(span for span in spans if span.start < span.end)

    def _changes_between(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Each (second, offset before, offset after) with start < second <= end."""
        before = self._offset(start)
        while start < end:
            probe = min(start + _PROBE_EVERY, end)
            after = self._offset(probe)
            if before != after:
                yield self._bisect(start, probe, before), before, after
            start, before = probe, after

    def _bisect(self, low: int, high: int, before: int) -> int:
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == before:
                low = middle
            else:
                high = middle
        return high

    def _offset(self, second: int) -> int:
        # The outermost days have no clock changes, and their wall times may not fit a datetime.
        inside = min(max(second, FIRST_SECOND + 2 * DAY), LAST_SECOND - 2 * DAY)
        return _seconds(datetime.fromtimestamp(inside, self._info).utcoffset() or timedelta())


def _seconds(offset: timedelta) -> int:
    return offset.days * DAY + offset.seconds


def _always(offset: int) -> Span:
    start, end = FIRST_SECOND, LAST_SECOND + DAY
    return Span(start, end, offset, 0, start + offset)


def zone(name: str) -> Zone:
    """The zone of this exact name in the tz database; anything else is refused."""
    if not isinstance(name, str):
        raise InvalidZone("tz", f"must be a zone name such as 'Europe/Berlin', not {type(name).__name__}")
    if name not in zone_names():
        raise _unknown(name)
    return _load(name)


@cache
def zone_names() -> frozenset[str]:
    """The tz database's own list. Paths, case variants and host files are not in it, so cannot be opened."""
    listed = (files("tzdata") / "zones").read_text(encoding="ascii").split()
    return frozenset(listed) - _NOT_PLACES


@cache
def _load(name: str) -> Zone:
    # ZoneInfo(name) would prefer the host's files; two machines must agree on every slot,
    # so the bytes come from the tzdata package alone.
    with (files("tzdata") / "zoneinfo").joinpath(*name.split("/")).open("rb") as data:
        return Zone(name, ZoneInfo.from_file(data, key=name))


def _unknown(name: str) -> InvalidZone:
    if not name:
        return InvalidZone("tz", "is empty", fix="name a zone such as 'Europe/Berlin', or 'UTC'")
    if len(name) > _LONGEST_NAME:
        return InvalidZone("tz", f"is longer than any zone's name ({len(name)} characters)", position=_LONGEST_NAME)
    for position, letter in enumerate(name):
        if not (letter.isascii() and letter.isprintable()):
            reason = f"holds {letter!a} (U+{ord(letter):04X}), which no zone's name does"
            return InvalidZone("tz", reason, position=position)
    by_lower = {known.lower(): known for known in zone_names()}
    # Abbreviations that look alike lie on different continents.
    places = [known for known in by_lower if "/" in known or known == name.lower()]
    close = get_close_matches(name.lower(), places, n=1)
    fix = f"did you mean {by_lower[close[0]]!r}?" if close else "names look like 'Europe/Berlin'"
    return InvalidZone("tz", f"{name!r} is not a zone of the tz database", fix=fix)
