"""What became of the slots that were due, counted: the two sides of the equation that every audit shows."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from duly.domain.runs import GapReason, Reason, RunKind, RunStatus

_RAN = (RunStatus.SUCCESS, RunStatus.ERROR)


class Part(NamedTuple):
    """How many slots met one fate, for one reason."""

    fate: str
    reason: str | None
    slots: int


@dataclass(slots=True, kw_only=True)
class Equation:
    """`due` is counted from the plan, everything else from the ledger: where the laws hold, the sums agree.

    A row's status is counted with its reason, if it has one. `paused` slots were not planned, so they were not due, and
    runs that were `extra` stand for no slot.
    """

    due: int = 0
    rows: Counter[tuple[RunStatus, Reason | None]] = field(default_factory=Counter)
    missed: Counter[GapReason] = field(default_factory=Counter)
    owed: int = 0
    unopened: int = 0
    lost: int = 0
    paused: int = 0
    extra: Counter[RunKind] = field(default_factory=Counter)

    def add(self, other: "Equation") -> None:
        self.due += other.due
        self.rows += other.rows
        self.missed += other.missed
        self.owed += other.owed
        self.unopened += other.unopened
        self.lost += other.lost
        self.paused += other.paused
        self.extra += other.extra

    @property
    def accounted(self) -> int:
        return self.rows.total() + self.missed.total() + self.owed + self.unopened + self.lost

    def parts(self) -> list[Part]:
        """Everything that slots became, the rows first, none that is 0."""
        rows = [Part(status, reason, slots) for (status, reason), slots in self.rows.items()]
        missed = [Part("missed", reason, slots) for reason, slots in self.missed.items()]
        rest = {"owed": self.owed, "not opened yet": self.unopened, "lost": self.lost}
        parts = [*sorted(rows, key=_by_name), *sorted(missed, key=_by_name)]
        parts += [Part(fate, None, slots) for fate, slots in rest.items()]
        return [part for part in parts if part.slots]

    def __str__(self) -> str:
        """`412 due = 409 ran + 2 skipped (overlap) + 1 missed (outage)`."""
        succeeded, failed = (self.rows[status, None] for status in _RAN)
        words = [f"{succeeded + failed} ran" + (f" ({failed} failed)" if failed else "")] if succeeded + failed else []
        for fate, reason, slots in self.parts():
            if reason is not None or fate not in _RAN:
                words.append(f"{slots} {fate}" + (f" ({reason})" if reason else ""))
        return f"{self.due} due" + (f" = {' + '.join(words)}" if words else "")


def _by_name(part: Part) -> tuple[str, str]:
    return part.fate, part.reason or ""
