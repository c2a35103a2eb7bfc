"""What an audit finds: which law was broken, where, and how it can be seen."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written

MOST_KEPT = 100


class Law(StrEnum):
    """Named by how it is broken."""

    LOST = "lost"  # a planned slot that nothing accounts for
    DOUBLED = "doubled"  # a slot that is accounted for twice, or ran twice
    UNPLANNED = "unplanned"  # a row, or a gap's count, that no revision in force planned
    STUCK = "stuck"  # something that will never end, or never fire, by itself
    BACKWARDS = "backwards"  # a record that contradicts the order of things
    MISSED_WITHOUT_OUTAGE = "missed without outage"  # slots left out although a timekeeper was alive


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`slots` of them from `first` through `last`, in UTC seconds; none if it is about no slot."""

    law: Law
    schedule_id: ScheduleId
    text: str
    first: int | None = None
    last: int | None = None
    slots: int = 0

    def __str__(self) -> str:
        if self.first is None or self.last is None:
            return f"{self.law}: {self.text}"
        place = written(Instant(self.first * SECOND))
        if self.last != self.first:
            place += f" through {written(Instant(self.last * SECOND))}"
        if self.slots > 1:
            place += f", {self.slots} slots"
        return f"{self.law}: {place}: {self.text}"


@dataclass(slots=True)
class Findings:
    """All are counted, a slot at a time; the first hundred are kept."""

    schedule_id: ScheduleId
    kept: list[Finding] = field(default_factory=list)
    counts: Counter[Law] = field(default_factory=Counter)
    unkept: Counter[Law] = field(default_factory=Counter)

    def add(self, law: Law, text: str) -> None:
        self._add(Finding(law=law, schedule_id=self.schedule_id, text=text))

    def add_slot(self, law: Law, slot: int, text: str) -> None:
        self.add_slots(law, slot, slot, 1, text)

    def add_slots(self, law: Law, first: int, last: int, slots: int, text: str) -> None:
        self._add(Finding(law=law, schedule_id=self.schedule_id, text=text, first=first, last=last, slots=slots))

    def _add(self, finding: Finding) -> None:
        count = max(finding.slots, 1)
        self.counts[finding.law] += count
        if len(self.kept) < MOST_KEPT:
            self.kept.append(finding)
        else:
            self.unkept[finding.law] += count
