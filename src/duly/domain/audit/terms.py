"""Which revision planned which slots: the terms of a schedule's life, and the slots in them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from duly.domain.cadence import TZ_VERSION, Bounded, Cadence, Cron, UnreadableCron
from duly.domain.schedules import Revision, ScheduleState


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """The slots that a revision is in force for: later than `after`, up to `through`; None while it lasts.

    `is_known` says whether they can be worked out here: other tz data may read a wall clock differently.
    """

    revision: Revision
    after: int
    through: int | None
    is_known: bool

    @property
    def plans(self) -> bool:
        return self.revision.state is ScheduleState.ACTIVE

    def holds(self, second: int) -> bool:
        return self.after < second and (self.through is None or second <= self.through)

    def slots_after(self, second: int) -> Iterator[int]:
        for slot in self.revision.cadence.seconds_after(max(second, self.after)):
            if self.through is not None and slot > self.through:
                return
            yield slot

    def count(self, first: int, last: int) -> int:
        """How many fires of its cadence lie in a span of its own, both ends included."""
        return self.revision.cadence.count(first - 1, last)


def terms_of(revisions: Sequence[Revision], *, tz_version: str = TZ_VERSION) -> list[Term]:
    """In order and without overlap, even if the revisions are not."""
    starts: list[int] = []
    for revision in revisions:
        starts.append(max(revision.effective_from, starts[-1] if starts else revision.effective_from))
    return [
        Term(
            revision=revision,
            after=start,
            through=end,
            is_known=_can_be_worked_out(revision.cadence, same_tz=revision.tz_version == tz_version),
        )
        for revision, start, end in zip(revisions, starts, [*starts[1:], None], strict=True)
    ]


def term_at(terms: Sequence[Term], second: int) -> Term | None:
    """The term that a second lies in; None before the first."""
    found = bisect_left(terms, second, key=attrgetter("after")) - 1
    return terms[found] if found >= 0 else None


class Planned(NamedTuple):
    slot: int
    term: Term


class PlannedSlots:
    """The slots that can be worked out, in order, as a cursor on the `next` of them; None when none is left."""

    __slots__ = ("_slots", "_terms", "next")

    def __init__(self, terms: Sequence[Term], *, after: int) -> None:
        self._terms = [term for term in terms if term.plans and term.is_known]
        self.next: Planned | None = None
        self._begin_after(after)

    def step(self) -> None:
        self.next = next(self._slots, None)

    def skip_through(self, second: int) -> None:
        """To the first slot after a second, if there is one on the way to it."""
        if self.next is None or self.next.slot > second:
            return
        self.step()
        if self.next is not None and self.next.slot <= second:
            self._begin_after(second)

    def _begin_after(self, second: int) -> None:
        self._terms = [term for term in self._terms if term.through is None or term.through > second]
        self._slots = (Planned(slot, term) for term in self._terms for slot in term.slots_after(second))
        self.step()


def _can_be_worked_out(cadence: Cadence, *, same_tz: bool) -> bool:
    match cadence:
        case Bounded():
            return _can_be_worked_out(cadence.cadence, same_tz=same_tz)
        case UnreadableCron():
            return False
        case Cron():
            return same_tz or cadence.tz == "UTC"  # whose clock never changes, whatever the version
        case _:
            return True
