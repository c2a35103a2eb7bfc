"""Answers why from recorded facts alone: reads, and writes nothing."""

from dataclasses import dataclass

from duly.application.audit import EVER
from duly.application.spending import spending_in
from duly.domain.audit import Timekeeping
from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.explanations import (
    Explanation,
    RunFacts,
    ScheduleFacts,
    SlotFacts,
    explain_run,
    explain_schedule,
    explain_slot,
)
from duly.domain.ids import RunId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.runs import Arrears, Run, RunKind, UnknownRun
from duly.domain.schedules import Schedule, UnknownSchedule
from duly.ports.storage import ReadOnlyStorage, Transaction

NEWEST_RUNS = 5
MOST_BY_HAND = 20
_END_OF_TIME = Instant(2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """`owner` is the caller, who can ask about its own schedules only; an operator names none."""

    storage: ReadOnlyStorage
    outage_after: Micros = OUTAGE_AFTER

    async def schedule(self, schedule_id: ScheduleId, *, owner: str | None = None) -> Explanation:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> ScheduleFacts:
            return ScheduleFacts(
                schedule=await _found(tx, schedule_id, owner),
                revisions=await tx.schedules.revisions(schedule_id),
                now=now,
                timekeeping=await self._timekeeping(tx, now, since=now),
                runs=await tx.ledger.of_schedule(schedule_id, before=None, most=NEWEST_RUNS),
                gap=await tx.audit.last_gap(schedule_id, through=_END_OF_TIME),
                owed=await tx.ledger.arrears(schedule_id),
            )

        return explain_schedule(await self.storage.read(work))

    async def slot(self, schedule_id: ScheduleId, slot: int, *, owner: str | None = None) -> Explanation:
        """`slot` is a UTC second."""
        now = self.storage.clock.now()
        at = Instant(slot * SECOND)

        async def work(tx: Transaction) -> SlotFacts:
            schedule = await _found(tx, schedule_id, owner)
            run = await tx.ledger.slot(schedule_id, at)
            gap = await tx.audit.last_gap(schedule_id, through=at)
            revisions = await tx.schedules.revisions(schedule_id)
            same = await tx.ledger.of_schedule(schedule_id, before=Instant(at + SECOND), since=at, most=MOST_BY_HAND)
            by_hand = [each for each in same if each.kind is not RunKind.SLOT]
            return SlotFacts(
                schedule=schedule,
                revisions=revisions,
                slot=slot,
                now=now,
                timekeeping=await self._timekeeping(tx, now, since=EVER),
                run=run,
                jobs=[] if run is None or run.job_id is None else await tx.audit.attempts(run.job_id),
                gap=gap if gap is not None and gap.last >= at else None,
                owed=next((owed for owed in await tx.ledger.arrears(schedule_id) if _owes(owed, at)), None),
                reviews={each.id: await _asked_by(tx, each) for each in (run, *by_hand) if each is not None},
                by_hand=by_hand,
                spending=None if run is None else await spending_in(tx, run, revisions),
            )

        return explain_slot(await self.storage.read(work))

    async def run(self, run_id: RunId, *, owner: str | None = None) -> Explanation:
        """A slot's run is as its slot is; others speak for themselves."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> RunFacts:
            run = await tx.ledger.get(run_id)
            if run is None or owner not in (None, run.owner):
                raise UnknownRun(run_id)
            jobs = [] if run.job_id is None else await tx.audit.attempts(run.job_id)
            spending = await spending_in(tx, run, await tx.schedules.revisions(run.schedule_id))
            return RunFacts(run=run, now=now, jobs=jobs, reviews=await _asked_by(tx, run), spending=spending)

        facts = await self.storage.read(work)
        if facts.run.kind is RunKind.SLOT:
            return await self.slot(facts.run.schedule_id, facts.run.scheduled_for // SECOND, owner=owner)
        return explain_run(facts)

    async def _timekeeping(self, tx: Transaction, now: Instant, *, since: Instant) -> Timekeeping:
        spans = await tx.ledger.coverage(since)
        return Timekeeping.from_spans(spans, now=now, outage_after=self.outage_after)


async def _found(tx: Transaction, schedule_id: ScheduleId, owner: str | None) -> Schedule:
    schedule = await tx.schedules.get(schedule_id)
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(schedule_id)
    return schedule


async def _asked_by(tx: Transaction, run: Run) -> list[str]:
    """What a run waits for people to decide."""
    if run.run_id is None or run.status.is_terminal:
        return []
    return [review.waiting_in_words for review in await tx.reviews.of_run(run.run_id) if review.is_open]


def _owes(owed: Arrears, at: Instant) -> bool:
    return owed.next <= at <= owed.last
