"""What became of the slots that were due, counted: the two sides of the equation that every audit shows."""

from collections import Counter
from dataclasses import dataclass, field

from duly.domain.runs import GapReason, Reason, RunKind, RunStatus


@dataclass(slots=True, kw_only=True)
class Tally:
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

    def add(self, other: "Tally") -> None:
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

    def __str__(self) -> str:
        """`412 due = 409 ran + 2 skipped (overlap) + 1 missed (outage)`."""
        parts = [*self._rows(), *self._rest()]
        return f"{self.due} due" + (f" = {' + '.join(parts)}" if parts else "")

    def _rows(self) -> list[str]:
        failed = self.rows[RunStatus.ERROR, None]
        ran = self.rows[RunStatus.SUCCESS, None] + failed
        parts = [f"{ran} ran" + (f" ({failed} failed)" if failed else "")] if ran else []
        for (status, reason), count in sorted(self.rows.items(), key=_by_name):
            if (status, reason) not in {(RunStatus.SUCCESS, None), (RunStatus.ERROR, None)} and count:
                parts.append(f"{count} {status}" + (f" ({reason})" if reason else ""))
        return parts

    def _rest(self) -> list[str]:
        parts = [f"{count} missed ({reason})" for reason, count in sorted(self.missed.items()) if count]
        counts = {"owed": self.owed, "not opened yet": self.unopened, "lost": self.lost}
        return parts + [f"{count} {word}" for word, count in counts.items() if count]


def _by_name(counted: tuple[tuple[RunStatus, Reason | None], int]) -> tuple[str, str]:
    (status, reason), _ = counted
    return status, reason or ""
