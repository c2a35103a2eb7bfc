"""What a clock change does to a cron cadence, in plain words for people who plan around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from duly.domain.cadence.fires import Fires
from duly.domain.cadence.instants import utc_of
from duly.domain.cadence.wall import Span


class NoteKind(StrEnum):
    MOVED = "moved"
    """A set time falls into a gap and fires at the gap's end."""
    SKIPPED = "skipped"
    """Fires fall into a gap and do not happen."""
    ONLY_ONCE = "only_once"
    """A set time comes twice and fires at the first pass."""
    TWICE = "twice"
    """Wall times come twice and fire both times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One clock change that matters to a cadence."""

    at: datetime
    """The instant of the change, in UTC."""
    kind: NoteKind
    text: str


def notes_between(fires: Fires, start: int, end: int) -> Iterator[Note]:
    """A note for each clock change in [start, end) that moves, drops or repeats a fire."""
    for span in fires.zone.changes(start, end):
        old, new = span.start + span.offset - span.shift, span.start + span.offset
        touched = _Touched(fires, min(old, new), max(old, new))
        if touched.count:
            kind, effect = _effect(fires, span, touched)
            text = f"{fires.zone.name}: {_change(old, new)}. {effect}"
            yield Note(at=utc_of(span.start), kind=kind, text=text)


class _Touched:
    """The planned wall readings in [low, high): those a gap swallows or a fold repeats."""

    def __init__(self, fires: Fires, low: int, high: int) -> None:
        self.count = 0
        self.first = self.last = wall = fires.wall_on_or_after(low)
        while wall < high:
            self.count += 1
            self.last = wall
            wall = fires.wall_on_or_after(wall + 1)

    def described(self) -> str:
        if self.count == 1:
            return f"The fire planned for {_time(self.first)}"
        return f"The {self.count} fires planned from {_time(self.first)} to {_time(self.last)}"


def _effect(fires: Fires, span: Span, touched: _Touched) -> tuple[NoteKind, str]:
    followed = not fires.fixed or span.correction
    who, many = touched.described(), touched.count > 1
    if span.shift < 0:
        if followed:
            return NoteKind.TWICE, f"{who} {'run' if many else 'runs'} twice, once in each pass."
        return NoteKind.ONLY_ONCE, f"{who} {'run' if many else 'runs'} at the first pass only."
    if followed:
        return NoteKind.SKIPPED, f"{who} {'are' if many else 'is'} skipped."
    resumed = span.start + span.offset
    joined = ", which is planned anyway" if fires.wall_on_or_after(resumed) == resumed else ""
    return NoteKind.MOVED, f"{who} {'run once' if many else 'runs'} at {_time(resumed)} instead{joined}."


def _change(old: int, new: int) -> str:
    before, after = utc_of(old), utc_of(new)
    way = "forward" if new > old else "back"
    target = _time(new) if before.date() == after.date() else f"{after:%Y-%m-%d} {_time(new)}"
    return f"on {before:%Y-%m-%d} the clock goes {way} from {_time(old)} to {target}"


def _time(wall: int) -> str:
    reading = utc_of(wall)
    return f"{reading:%H:%M:%S}" if reading.second else f"{reading:%H:%M}"
