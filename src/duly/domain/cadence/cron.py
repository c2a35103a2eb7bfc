"""Cron cadences: an expression read on a zone's wall clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from duly.domain.cadence.cadence import Cadence, span_of
from duly.domain.cadence.dialect import Expression, parse
from duly.domain.cadence.fires import Fires
from duly.domain.cadence.instants import second_of
from duly.domain.cadence.notes import Note, notes_between
from duly.domain.cadence.wall import zone
from duly.domain.cadence.words import cron_in_words

_CADENCES_KEPT = 4096


@dataclass(frozen=True, slots=True, repr=False)
class Cron(Cadence):
    """Fires when the wall clock of `tz` reads what `expr` names; build it with `cron()`."""

    expr: str
    tz: str
    _expression: Expression = field(compare=False)
    _fires: Fires = field(compare=False)

    def next_second(self, after: int) -> int | None:
        return self._fires.next_second(after)

    def last_second(self, through: int) -> int | None:
        return self._fires.last_second(through)

    def count(self, after: int, through: int) -> int:
        return self._fires.count(after, through)

    def seconds_after(self, after: int) -> Iterator[int]:
        return self._fires.seconds_after(after)

    def next_after(self, instant: datetime) -> datetime | None:
        # The same as for every cadence, one call shorter on the path that runs most.
        second = self._fires.next_second(second_of("instant", instant))
        return None if second is None else datetime.fromtimestamp(second, UTC)

    def explain(self) -> str:
        """In words: `At 09:00 on Monday through Friday, Europe/Berlin`."""
        return cron_in_words(self._expression.text, self.tz)

    def dst_notes(self, start: datetime, end: datetime) -> list[Note]:
        """What each clock change in [start, end) moves, skips or repeats; the others are left out."""
        return list(notes_between(self._fires, *span_of(start, end)))

    def __repr__(self) -> str:
        return f"cron({self.expr!r})" if self.tz == "UTC" else f"cron({self.expr!r}, {self.tz!r})"

    def __reduce__(self) -> tuple[Callable[[str, str], "Cron"], tuple[str, str]]:
        return cron, (self.expr, self.tz)


def cron(expr: str, tz: str = "UTC") -> Cron:
    """A cadence from a cron expression of 5 fields, 6 with seconds first, or a macro such as `@daily`.

    Times are those of the wall clock in `tz`, a name of the tz database. Raises InvalidInput, naming field,
    position and reason, for whatever is malformed or can never fire.
    """
    if type(expr) is str and type(tz) is str:
        return _cron(expr, tz)
    return _read(expr, tz)


def _read(expr: str, tz: str) -> Cron:
    expression = parse(expr)
    return Cron(" ".join(expr.split()), tz, expression, Fires(expression, zone(tz)))


_cron = lru_cache(_CADENCES_KEPT)(_read)
