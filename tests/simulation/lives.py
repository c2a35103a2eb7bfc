"""Schedules as the simulation knows them: what it asked for and when, and what it saw become of each slot."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from duly.domain.policies import Policies
from tests.seasons import Timetable


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A change that was asked for at a second; what is None stays as it was."""

    schedule: str
    second: int
    timetable: Timetable | None = None
    policies: Policies | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What was in force for slots later than `after`, until the next term."""

    number: int
    after: int
    state: str
    timetable: Timetable
    policies: Policies


class Row(NamedTuple):
    """A row of the ledger, as it was when it was first seen; the slot is a second."""

    place: int
    id: str
    schedule: str
    revision: int
    kind: str
    own_key: str
    slot: int
    fire_at: int
    opened_at: int
    status: str
    reason: str | None
    detail: str | None
    job: str | None


class Gap(NamedTuple):
    first: int
    last: int
    slots: int
    reason: str
    revision: int
    recorded_at: int


class Owed(NamedTuple):
    first: int
    next: int
    last: int
    slots: int
    due_at: int
    revision: int


class InFlight(NamedTuple):
    """A run that had not ended when slots were decided; `asked` to stop, or not. It may have been withdrawn since."""

    id: str
    status: str
    asked: bool

    @property
    def is_gone(self) -> bool:
        return self.status not in ("pending", "running")


@dataclass(slots=True)
class Life:
    """One schedule. `through` is the last second that is decided: every slot up to it has met its fate or is owed.

    It was last `changed_at` so long after the simulation began.
    """

    id: str
    terms: list[Term] = field(default_factory=list)
    through: int = 0
    changed_at: int = 0
    fates: dict[int, str] = field(default_factory=dict)
    owed: dict[int, int] = field(default_factory=dict)
    caught_up: set[int] = field(default_factory=set)
    gaps: dict[int, Gap] = field(default_factory=dict)
    extra: dict[str, set[int]] = field(default_factory=dict)

    @property
    def now(self) -> Term:
        return self.terms[-1]

    @property
    def is_there(self) -> bool:
        return bool(self.terms) and self.now.state != "deleted"

    def term(self, number: int) -> Term:
        return self.terms[number - 1]

    def planned(self, after: int, through: int) -> list[int]:
        """All slots that were ever planned in there, each by the term that was in force."""
        ends = [term.after for term in self.terms[1:]] + [through]
        slots: list[int] = []
        for term, end in zip(self.terms, ends, strict=True):
            if term.state == "active":
                slots += term.timetable.slots(max(after, term.after), min(through, end))
        return slots

    def change(self, wish: Wish) -> Term:
        """The next term: from the later of when it was asked for and what was decided by then."""
        if not self.terms:
            assert wish.timetable is not None
            assert wish.policies is not None
            term = Term(number=1, after=wish.second, state="active", timetable=wish.timetable, policies=wish.policies)
        else:
            term = Term(
                number=self.now.number + 1,
                after=max(self.through, wish.second),
                state=wish.state or self.now.state,
                timetable=wish.timetable or self.now.timetable,
                policies=wish.policies or self.now.policies,
            )
        self.terms.append(term)
        self.through = max(self.through, term.after)
        return term

    def next_slot(self) -> int | None:
        timetable = self.now.timetable
        ahead = timetable.slots(self.through, timetable.season.end) if self.now.state == "active" else []
        return ahead[0] if ahead else None

    def undecided(self, through: int) -> list[int]:
        """Planned slots that should have met a fate by then, and have not."""
        if not self.terms:
            return []
        return [slot for slot in self.planned(0, through) if slot not in self.fates and slot not in self.owed]


@dataclass(slots=True, kw_only=True)
class Decided:
    """What one transaction decided about one schedule at an instant: each slot in one of these."""

    at: int
    rows: dict[int, Row] = field(default_factory=dict)
    gaps: dict[int, str] = field(default_factory=dict)
    owed: dict[int, Owed] = field(default_factory=dict)
    caught_up: dict[int, Row] = field(default_factory=dict)
    forgiven: dict[int, str] = field(default_factory=dict)
    in_flight: list[InFlight] = field(default_factory=list)
    is_deleted: bool = False
    is_a_pool_draining: bool = False

    def anew(self) -> list[int]:
        """Slots that met their first fate."""
        return sorted([*self.rows, *self.gaps, *self.owed])


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody kept time between two instants, both excluded."""

    start: int
    end: int

    def holds(self, first: int, last: int) -> bool:
        return self.start < first and last < self.end

    def touches(self, first: int, last: int) -> bool:
        return self.start < last and first < self.end


def silences(spans: Iterable[tuple[int, int]], *, longer_than: int) -> list[Silence]:
    found: list[Silence] = []
    alive_through: int | None = None
    for start, end in sorted(spans):
        if alive_through is not None and start - alive_through > longer_than:
            found.append(Silence(alive_through, start))
        alive_through = end if alive_through is None else max(alive_through, end)
    return found
