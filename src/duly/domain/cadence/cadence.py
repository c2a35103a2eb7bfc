"""What every cadence promises: its fires, strictly after any instant, in order, none twice."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from duly.domain.cadence.instants import DAY, second_of, utc_of
from duly.domain.cadence.notes import Note
from duly.domain.errors import InvalidInput

_LONGEST_SPAN = 36_525 * DAY


class Cadence(ABC):
    """When something is due; a value without state, so it can be shared and compared freely."""

    __slots__ = ()

    @abstractmethod
    def next_second(self, after: int) -> int | None:
        """The first fire later than `after`, both as UTC seconds since 1970; None when there is none."""

    @abstractmethod
    def last_second(self, through: int) -> int | None:
        """The last fire at or before `through`; None when there is none. Steps through no span, however long."""

    @abstractmethod
    def count(self, after: int, through: int) -> int:
        """How many fires are later than `after` and not later than `through`, without stepping through them."""

    @abstractmethod
    def explain(self) -> str:
        """The cadence in words."""

    def seconds_after(self, after: int) -> Iterator[int]:
        """Every later fire, as UTC seconds since 1970."""
        second = self.next_second(after)
        while second is not None:
            yield second
            second = self.next_second(second)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first fire strictly after the instant; None when there is none."""
        second = self.next_second(second_of("instant", instant))
        return None if second is None else datetime.fromtimestamp(second, UTC)

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Every fire strictly after the instant, in order; ends when no fire is left."""
        return map(utc_of, self.seconds_after(second_of("instant", instant)))

    def within(self, *, start_at: datetime | None = None, end_at: datetime | None = None) -> "Bounded":
        """The same fires, none before `start_at` and none after `end_at`; a fire at either of them counts."""
        first = None if start_at is None else second_of("start_at", start_at) + bool(start_at.microsecond)
        last = None if end_at is None else second_of("end_at", end_at)
        if first is not None and last is not None and last < first:
            raise InvalidInput("end_at", "lies before start_at, so nothing could ever fire", fix="swap the two")
        return Bounded(cadence=self, first=first, last=last)

    def dst_notes(self, start: datetime, end: datetime) -> list[Note]:
        """What clock changes in [start, end) do to this cadence; nothing, unless it follows a wall clock."""
        span_of(start, end)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(Cadence):
    """A cadence between two instants, both included; build it with `within()`."""

    cadence: Cadence
    first: int | None
    last: int | None

    def next_second(self, after: int) -> int | None:
        second = self.cadence.next_second(after if self.first is None else max(after, self.first - 1))
        return None if second is None or (self.last is not None and second > self.last) else second

    def last_second(self, through: int) -> int | None:
        second = self.cadence.last_second(through if self.last is None else min(through, self.last))
        return None if second is None or (self.first is not None and second < self.first) else second

    def count(self, after: int, through: int) -> int:
        return self.cadence.count(
            after if self.first is None else max(after, self.first - 1),
            through if self.last is None else min(through, self.last),
        )

    def explain(self) -> str:
        words = [self.cadence.explain()]
        if self.first is not None:
            words.append(f"from {utc_of(self.first):%Y-%m-%d %H:%M:%S} UTC")
        if self.last is not None:
            words.append(f"until {utc_of(self.last):%Y-%m-%d %H:%M:%S} UTC")
        return ", ".join(words)

    def dst_notes(self, start: datetime, end: datetime) -> list[Note]:
        return [note for note in self.cadence.dst_notes(start, end) if self._covers(second_of("at", note.at))]

    def _covers(self, second: int) -> bool:
        return (self.first is None or second >= self.first) and (self.last is None or second <= self.last)


def span_of(start: datetime, end: datetime) -> tuple[int, int]:
    """The span in seconds, refused when it runs backwards or is too long to list."""
    first, last = second_of("start", start), second_of("end", end)
    if last < first:
        raise InvalidInput("end", "lies before start")
    if last - first > _LONGEST_SPAN:
        raise InvalidInput("end", "lies more than 100 years after start", fix="ask for a shorter span")
    return first, last
