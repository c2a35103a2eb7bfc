"""Answers why from recorded facts alone: reads, and writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.application.audit import EVER
from duly.application.flow_facts import why_execution, why_group, why_unput, why_workflow_run
from duly.application.job_facts import Asking, job_facts, wait_of
from duly.application.spending import spending_in
from duly.domain.audit import Timekeeping
from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.errors import NotFound
from duly.domain.explanations import (
    Explained,
    Explanation,
    NothingKnown,
    RunFacts,
    ScheduleFacts,
    SlotFacts,
    explain_job,
    explain_run,
    explain_schedule,
    explain_slot,
    waiting_in_words,
)
from duly.domain.ids import GroupId, JobId, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import FinishedJob, Job, JobState, UnknownJob
from duly.domain.runs import Arrears, Run, RunKind, UnknownRun
from duly.domain.schedules import Schedule, UnknownSchedule
from duly.domain.texts import text_of
from duly.ports.storage import ReadOnlyStorage, Transaction

NEWEST_RUNS = 5
MOST_BY_HAND = 20
_END_OF_TIME = Instant(2**63 - 1)
_QUEUED = (JobState.READY, JobState.WAITING, JobState.PARKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """`owner` is the caller, who can ask about its own schedules only; an operator names none."""

    storage: ReadOnlyStorage
    outage_after: Micros = OUTAGE_AFTER

    async def schedule(self, schedule_id: ScheduleId, *, owner: str | None = None) -> Explanation:
        asking = self._asking(owner)
        return await self.storage.read(lambda tx: self._schedule(tx, schedule_id, asking))

    async def slot(self, schedule_id: ScheduleId, slot: int, *, owner: str | None = None) -> Explanation:
        """`slot` is a UTC second."""
        asking = self._asking(owner)
        return await self.storage.read(lambda tx: self._slot(tx, schedule_id, slot, asking))

    async def run(self, run_id: RunId, *, owner: str | None = None) -> Explanation:
        """A slot's run is as its slot is; others speak for themselves."""
        asking = self._asking(owner)
        return await self.storage.read(lambda tx: self._run(tx, run_id, asking))

    async def job(self, job_id: JobId, *, owner: str | None = None) -> Explained:
        """Why it waits, and for what; or how its attempts ended, and why there is no other."""
        asking = self._asking(owner)
        return await self.storage.read(lambda tx: _job(tx, job_id, asking))

    async def group(self, group_id: GroupId, *, owner: str | None = None) -> Explained:
        """How far it has come, who holds it up, and who failed."""
        asking = self._asking(owner)
        return await self.storage.read(lambda tx: why_group(tx, group_id, asking))

    async def workflow_run(self, run_id: str, *, owner: str | None = None, workflow: str | None = None) -> Explained:
        """What became of its nodes, and what the others wait for; of a named workflow, if one is named."""
        asking = self._asking(owner)
        return await self.storage.read(lambda tx: why_workflow_run(tx, run_id, asking, workflow=workflow))

    async def of(self, named: str, *, owner: str | None = None) -> Explanation | Explained:
        """Of whatever has that id: a run is as its slot is, a job of a run and a review as the run is."""
        asking = self._asking(owner)
        asked = text_of(named, field="id")
        return await self.storage.read(lambda tx: self._of(tx, asked, asking))

    async def _of(self, tx: Transaction, named: str, asking: Asking) -> Explanation | Explained:
        try:
            if named.startswith("job_"):
                job = await tx.jobs.get(JobId(named))
                if job is None or job.ledger_run is None:
                    return await _job(tx, JobId(named), asking)
                return await self._run(tx, job.ledger_run, asking)
            if named.startswith("run_"):
                return await self._run(tx, RunId(named), asking)
            if named.startswith("grp_"):
                return await why_group(tx, GroupId(named), asking)
            if named.startswith("exe_"):
                return await self._execution(tx, named, asking)
            if named.startswith("review_") and (review := await tx.reviews.get(named)) is not None:
                return await self._execution(tx, review.run_id, asking)
            return await self._schedule(tx, ScheduleId(named), asking)
        except NotFound:
            return await self._else_schedule(tx, named, asking)

    async def _else_schedule(self, tx: Transaction, named: str, asking: Asking) -> Explanation:
        """Whoever names a schedule may name it like anything else."""
        try:
            return await self._schedule(tx, ScheduleId(named), asking)
        except NotFound:
            raise NothingKnown(named) from None

    async def _execution(self, tx: Transaction, run_id: str, asking: Asking) -> Explanation | Explained:
        if await tx.workflows.run(run_id) is not None:
            return await why_workflow_run(tx, run_id, asking)
        if (run := await tx.why.run_of_execution(run_id)) is not None:
            return await self._run(tx, run, asking)
        return await why_execution(tx, run_id, asking)

    def _asking(self, owner: str | None) -> Asking:
        clock = self.storage.clock
        return Asking(owner, clock.now(), clock.era, clock.lease_now())

    async def _schedule(self, tx: Transaction, schedule_id: ScheduleId, asking: Asking) -> Explanation:
        facts = ScheduleFacts(
            schedule=await _found(tx, schedule_id, asking.owner),
            revisions=await tx.schedules.revisions(schedule_id),
            now=asking.now,
            timekeeping=await self._timekeeping(tx, asking.now, since=asking.now),
            runs=await tx.ledger.of_schedule(schedule_id, before=None, most=NEWEST_RUNS),
            gap=await tx.audit.last_gap(schedule_id, through=_END_OF_TIME),
            owed=await tx.ledger.arrears(schedule_id),
        )
        return explain_schedule(facts)

    async def _slot(self, tx: Transaction, schedule_id: ScheduleId, slot: int, asking: Asking) -> Explanation:
        at = Instant(slot * SECOND)
        schedule = await _found(tx, schedule_id, asking.owner)
        run = await tx.ledger.slot(schedule_id, at)
        gap = await tx.audit.last_gap(schedule_id, through=at)
        revisions = await tx.schedules.revisions(schedule_id)
        same = await tx.ledger.of_schedule(schedule_id, before=Instant(at + SECOND), since=at, most=MOST_BY_HAND)
        by_hand = [each for each in same if each.kind is not RunKind.SLOT]
        jobs = [] if run is None or run.job_id is None else await tx.audit.attempts(run.job_id)
        facts = SlotFacts(
            schedule=schedule,
            revisions=revisions,
            slot=slot,
            now=asking.now,
            timekeeping=await self._timekeeping(tx, asking.now, since=EVER),
            run=run,
            jobs=jobs,
            gap=gap if gap is not None and gap.last >= at else None,
            owed=next((owed for owed in await tx.ledger.arrears(schedule_id) if _owes(owed, at)), None),
            reviews={each.id: await _asked_by(tx, each) for each in (run, *by_hand) if each is not None},
            by_hand=by_hand,
            spending=None if run is None else await spending_in(tx, run, revisions),
            waits=await _waits(tx, jobs, asking),
        )
        return explain_slot(facts)

    async def _run(self, tx: Transaction, run_id: RunId, asking: Asking) -> Explanation:
        run = await tx.ledger.get(run_id)
        if run is None or asking.owner not in (None, run.owner):
            raise UnknownRun(run_id)
        if run.kind is RunKind.SLOT:
            return await self._slot(tx, run.schedule_id, run.scheduled_for // SECOND, asking)
        jobs = [] if run.job_id is None else await tx.audit.attempts(run.job_id)
        facts = RunFacts(
            run=run,
            now=asking.now,
            jobs=jobs,
            reviews=await _asked_by(tx, run),
            spending=await spending_in(tx, run, await tx.schedules.revisions(run.schedule_id)),
            waits=await _waits(tx, jobs, asking),
        )
        return explain_run(facts)

    async def _timekeeping(self, tx: Transaction, now: Instant, *, since: Instant) -> Timekeeping:
        spans = await tx.ledger.coverage(since)
        return Timekeeping.from_spans(spans, now=now, outage_after=self.outage_after)


async def _found(tx: Transaction, schedule_id: ScheduleId, owner: str | None) -> Schedule:
    schedule = await tx.schedules.get(schedule_id)
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(schedule_id)
    return schedule


async def _job(tx: Transaction, job_id: JobId, asking: Asking) -> Explained:
    try:
        return explain_job(await job_facts(tx, job_id, asking))
    except UnknownJob:
        if (unput := await why_unput(tx, job_id, asking)) is None:
            raise
        return unput


async def _waits(tx: Transaction, jobs: Sequence[Job | FinishedJob], asking: Asking) -> Sequence[str]:
    """What the live job of a run waits for in the queue; the rest the run tells itself."""
    live = jobs[-1] if jobs else None
    if not isinstance(live, Job) or live.state not in _QUEUED:
        return []
    return [fact.sentence for fact in waiting_in_words(live, await wait_of(tx, live, asking))]


async def _asked_by(tx: Transaction, run: Run) -> list[str]:
    """What a run waits for people to decide."""
    if run.run_id is None or run.status.is_terminal:
        return []
    return [review.waiting_in_words for review in await tx.reviews.of_run(run.run_id) if review.is_open]


def _owes(owed: Arrears, at: Instant) -> bool:
    return owed.next <= at <= owed.last
