"""Holds one schedule's ledger against its plan, entry after entry in order of slots, keeping none of them.

It shares the law of time and the jitter with the timekeeper, and nothing of how the timekeeper decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from duly.domain.audit.equation import Equation
from duly.domain.audit.findings import Findings, Law
from duly.domain.audit.records import AuditedRun, Missing, Stray
from duly.domain.audit.rows import faults_of
from duly.domain.audit.terms import Planned, PlannedSlots, Term, term_at, terms_of
from duly.domain.audit.timekeeping import Timekeeping
from duly.domain.cadence import TZ_VERSION
from duly.domain.instants import SECOND, Instant, written
from duly.domain.jitter import fire_at
from duly.domain.runs import Run, RunKind
from duly.domain.schedules import Revision, Schedule, ScheduleState

_BEFORE_ALL = -(2**62)
_UNACCOUNTED = "opened, but has neither row nor gap, and is not owed"
_UNOPENED = "due for longer than the grace while a timekeeper was alive, but was not opened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`notes` say what could not be worked out, and why."""

    schedule: Schedule
    equation: Equation
    findings: Findings
    notes: Sequence[str]


class Judgement:
    """Rows and missing slots are handed in by first slot, missing ones before rows; then `verdict` is asked for.

    `since` leaves out slots up to a UTC second.
    """

    def __init__(
        self,
        schedule: Schedule,
        revisions: Sequence[Revision],
        *,
        timekeeping: Timekeeping,
        now: Instant,
        since: int | None = None,
        tz_version: str = TZ_VERSION,
    ) -> None:
        self._schedule = schedule
        self._timekeeping = timekeeping
        self._now = now
        self._since = _BEFORE_ALL if since is None else since
        self._tz_version = tz_version
        self._terms = terms_of(revisions, tz_version=tz_version)
        self._planned = PlannedSlots(self._terms, after=self._since)
        self._equation = Equation()
        self._findings = Findings(schedule.id)
        self._lost: _Lost | None = None
        self._last_row = self._missing_through = _BEFORE_ALL
        self._judge_revisions(revisions)

    def row(self, audited: AuditedRun) -> None:
        run, slot = audited.run, audited.slot
        for law, text in faults_of(audited, alive_at=self._timekeeping.alive_at):
            self._findings.add_slot(law, slot, f"{run.id} {text}")
        if run.kind is not RunKind.SLOT:
            self._equation.extra[run.kind] += 1
            return
        self._pass_over_unaccounted(slot)
        if slot == self._last_row:
            self._findings.add_slot(Law.DOUBLED, slot, f"{run.id} is a second row for this slot")
        elif slot <= self._missing_through:
            self._findings.add_slot(Law.DOUBLED, slot, f"{run.id} has a slot that is also recorded as missed or owed")
        else:
            self._account_row(run, slot)
        self._last_row = slot

    def missing(self, missing: Missing) -> None:
        self._pass_over_unaccounted(missing.first)
        term = term_at(self._terms, missing.first)
        if missing.first <= self._missing_through:
            self._of(missing, Law.DOUBLED, "in two gaps, or in a gap and owed as well")
        elif term is None or not term.plans or not term.holds(missing.last) or term.revision.number != missing.revision:
            self._of(missing, Law.UNPLANNED, f"revision {missing.revision}, which is named, did not plan them")
        else:
            self._account_missing(missing, term)
        self._planned.skip_through(missing.last)
        self._missing_through = max(self._missing_through, missing.last)

    def stray(self, stray: Stray) -> None:
        if stray.slot <= self._since:
            return
        named = "none" if stray.named is None else f"job {stray.named}"
        text = f"job {stray.job_id} completed for {stray.run_id}, whose own is {named}"
        self._findings.add_slot(Law.DOUBLED, stray.slot, text)

    def verdict(self) -> Verdict:
        self._pass_over_unaccounted(self._schedule.opened_through + 1)
        self._judge_unopened()
        self._end_lost()
        self._equation.paused = sum(self._paused_in(term) for term in self._terms)
        return Verdict(schedule=self._schedule, equation=self._equation, findings=self._findings, notes=self._notes())

    # What the ledger has

    def _account(self, through: int, slots: int) -> None:
        self._equation.due += slots
        self._end_lost()
        self._planned.skip_through(through)
        if through > self._schedule.opened_through:
            opened = _shown(self._schedule.opened_through)
            self._findings.add_slot(Law.BACKWARDS, through, f"recorded, though slots are open through {opened} only")

    def _account_row(self, run: Run, slot: int) -> None:
        term = term_at(self._terms, slot)
        if term is None:
            self._findings.add_slot(Law.UNPLANNED, slot, f"{run.id} lies before the first revision")
            return
        number, planned = term.revision.number, self._planned.next
        if not term.plans:
            why = f"was planned by nobody: revision {number} was in force, and {term.revision.state}"
            self._findings.add_slot(Law.UNPLANNED, slot, f"{run.id} {why}")
            return
        if term.is_known and (planned is None or planned.slot != slot):
            self._findings.add_slot(Law.UNPLANNED, slot, f"{run.id} is no slot of revision {number}: {_words(term)}")
            return
        if run.revision != number:
            why = f"names revision {run.revision}, but {number} was in force"
            self._findings.add_slot(Law.UNPLANNED, slot, f"{run.id} {why}")
        self._account(slot, 1)
        self._equation.rows[run.status, run.reason] += 1

    def _account_missing(self, missing: Missing, term: Term) -> None:
        slots = missing.slots
        if term.is_known:
            planned = term.count(missing.first, missing.last)
            if planned != missing.slots:
                self._of(missing, Law.UNPLANNED, f"the cadence has {planned} slots there: {_words(term)}")
            slots = planned if missing.first > self._since else term.count(self._since + 1, missing.last)
            if (alive := self._first_outside_an_outage(missing, term)) is not None:
                self._of(missing, Law.MISSED_WITHOUT_OUTAGE, f"a timekeeper was alive when {_shown(alive)} fired")
        self._account(missing.last, slots)
        if missing.reason is None:
            self._equation.owed += slots
        else:
            self._equation.missed[missing.reason] += slots

    def _first_outside_an_outage(self, missing: Missing, term: Term) -> int | None:
        """The first of the slots that fired while somebody kept time, though it is recorded as missed."""
        cadence, jitter = term.revision.cadence, term.revision.policies.jitter_ms * 1_000
        slot = cadence.next_second(missing.first - 1)
        while slot is not None and slot <= missing.last:
            outage = self._timekeeping.outage_at(self._fires_at(term, slot))
            if outage is None:
                return slot
            # Jitter keeps slots in order, so whatever fires before the outage ends fires inside it.
            slot = cadence.next_second(max(slot, (outage.end - jitter) // SECOND - 1))
        return None

    # What the plan has, and the ledger has not

    def _pass_over_unaccounted(self, before: int) -> None:
        """Planned slots before the next entry."""
        while (planned := self._planned.next) is not None and planned.slot < before:
            if planned.slot <= self._schedule.opened_through:
                self._lose(planned.slot, planned.slot, 1, _UNACCOUNTED)
            self._planned.step()

    def _judge_unopened(self) -> None:
        """Planned slots after the last entry that are due. Counted, since there may be years of them."""
        settled_before = self._timekeeping.settled_before
        if settled_before is not None:
            self._take_fired(Instant(settled_before - 1), self._lose_unopened)
        self._take_fired(self._now, self._leave_unopened)

    def _take_fired(self, by: Instant, take: Callable[[int, int, int], None]) -> None:
        while (planned := self._planned.next) is not None and self._fires_at(planned.term, planned.slot) <= by:
            last = self._last_fired(planned, by)
            take(planned.slot, last, planned.term.count(planned.slot, last))
            self._planned.skip_through(last)

    def _last_fired(self, planned: Planned, by: Instant) -> int:
        """The last slot of a term that fires by an instant, from one on that does.

        Jitter stays under half the way to the neighbours: it is the last slot by the clock, or next to it.
        """
        (slot, term), cadence = planned, planned.term.revision.cadence
        clock = by // SECOND if term.through is None else min(by // SECOND, term.through)
        last = max(slot, cadence.last_second(clock) or slot)
        later = cadence.next_second(last)
        if later is not None and term.holds(later) and self._fires_at(term, later) <= by:
            return later
        return last if self._fires_at(term, last) <= by else max(slot, cadence.last_second(last - 1) or slot)

    def _lose_unopened(self, first: int, last: int, slots: int) -> None:
        self._lose(first, last, slots, _UNOPENED)

    def _leave_unopened(self, first: int, last: int, slots: int) -> None:  # noqa: ARG002 - only their number counts
        self._equation.due += slots
        self._equation.unopened += slots

    def _lose(self, first: int, last: int, slots: int, why: str) -> None:
        self._equation.due += slots
        self._equation.lost += slots
        if self._lost is not None and self._lost.why == why:
            self._lost.last = last
            self._lost.slots += slots
        else:
            self._end_lost()
            self._lost = _Lost(first, last, slots, why)

    def _end_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            self._findings.add_slots(Law.LOST, lost.first, lost.last, lost.slots, lost.why)

    def _paused_in(self, term: Term) -> int:
        through = self._now // SECOND if term.through is None else term.through
        after = max(term.after, self._since)
        is_counted = term.revision.state is ScheduleState.PAUSED and term.is_known and through > after
        return term.count(after + 1, through) if is_counted else 0

    # The plan itself

    def _judge_revisions(self, revisions: Sequence[Revision]) -> None:
        schedule = self._schedule
        if [revision.number for revision in revisions] != list(range(1, schedule.revision + 1)):
            self._findings.add(Law.BACKWARDS, f"is at revision {schedule.revision}, but has not all up to it, in order")
        for earlier, later in pairwise(revisions):
            if later.effective_from < earlier.effective_from:
                self._findings.add(
                    Law.BACKWARDS, f"revision {later.number} is in force from before revision {earlier.number}"
                )
        if revisions and schedule.opened_through < revisions[-1].effective_from:
            opened = _shown(schedule.opened_through)
            self._findings.add(Law.BACKWARDS, f"its slots are open through {opened} only, before its last revision")
        if revisions and schedule.state is not revisions[-1].state:
            self._findings.add(Law.BACKWARDS, f"is {schedule.state}, but its last revision says {revisions[-1].state}")

    def _notes(self) -> list[str]:
        notes = []
        broken = [term for term in self._terms if term.revision.state is ScheduleState.BROKEN]
        if broken:
            until = "" if broken[-1].through is None else f" until {_shown(broken[-1].through)}"
            times = "once" if len(broken) == 1 else f"{len(broken)} times"
            notes.append(
                f"broke {times}, last after {_shown(broken[-1].after)}{until}: slots were not planned meanwhile"
            )
        foreign = [term.revision for term in self._terms if term.plans and not term.is_known]
        if foreign:
            which = f"revision {foreign[0].number}" if len(foreign) == 1 else f"{len(foreign)} revisions"
            versions = ", ".join(sorted({revision.tz_version for revision in foreign}))
            place = (
                f"the slots of {which} (tz data {versions}) cannot be worked out here, by tz data {self._tz_version}"
            )
            notes.append(f"{place}: what the ledger holds was checked, what it lacks was not")
        return notes

    def _fires_at(self, term: Term, slot: int) -> Instant:
        revision = term.revision
        return fire_at(
            self._schedule.id,
            revision.cadence,
            slot,
            jitter_ms=revision.policies.jitter_ms,
            not_before=revision.recorded_at,
        )

    def _of(self, missing: Missing, law: Law, text: str) -> None:
        what = f"recorded as missed ({missing.reason})" if missing.reason else "recorded as owed"
        self._findings.add_slots(law, missing.first, missing.last, missing.slots, f"{what}, but {text}")


@dataclass(slots=True)
class _Lost:
    """Lost slots in a row."""

    first: int
    last: int
    slots: int
    why: str


def _words(term: Term) -> str:
    return term.revision.cadence.explain()


def _shown(second: int) -> str:
    return written(Instant(second * SECOND))
