"""What callers do with runs: look at them, list them, cancel them. `owner` is the caller; an operator names none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from duly.application.pace import Pace
from duly.application.stopping import end_run
from duly.domain.ids import Owner, RunId, ScheduleId
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, Job
from duly.domain.runs import Run, RunAlreadyEnded, RunKind, RunStatus, UnknownRun
from duly.domain.schedules import UnknownSchedule
from duly.domain.texts import text_of, whole_number_of
from duly.ports.runs import RunsAsked
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Runs:
    storage: Storage
    pace: Pace

    async def get(self, run_id: str, *, owner: str | None) -> Run:
        return await self.storage.read(lambda tx: _known(tx, run_id, owner))

    async def list(
        self,
        *,
        owner: str | None,
        schedule_id: str | None = None,
        status: RunStatus | None = None,
        kind: RunKind | None = None,
        before: str | None = None,
        most: int = 100,
    ) -> Sequence[Run]:
        """The last opened first, of one schedule the latest slot first; `before` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        asked = RunsAsked(
            owner=None if owner is None else Owner(text_of(owner, field="owner")),
            schedule_id=None if schedule_id is None else ScheduleId(text_of(schedule_id, field="schedule_id")),
            status=status,
            kind=kind,
        )
        last = None if before is None else RunId(text_of(before, field="before"))

        async def work(tx: Transaction) -> Sequence[Run]:
            if asked.schedule_id is not None:
                await _require_schedule(tx, asked.schedule_id, owner)
            return await tx.runs.newest(asked, before=last, most=most)

        return await self.storage.read(work)

    async def cancel(self, run_id: str, *, owner: str | None, reason: str) -> Run:
        """Ends a run that waits; one that runs is asked to stop, and loses its claim if it does not in time."""
        text_of(reason, field="reason", longest=1_000)
        now = self.storage.clock.now()
        earlier_runs = count()

        async def work(tx: Transaction) -> Run:
            is_rerun = next(earlier_runs) > 0
            run = await _known(tx, run_id, owner)
            if is_rerun and (run.status, run.completed_at, run.detail) == (RunStatus.CANCELLED, now, reason):
                return run
            if not await self._end(tx, run, reason, now):
                raise RunAlreadyEnded(run.id)
            return await _known(tx, run_id, owner)

        return await self.storage.transact(work)

    async def _end(self, tx: Transaction, run: Run, reason: str, now: Instant) -> bool:
        if run.job_id is None and not run.status.is_terminal:
            await tx.ledger.close([run._replace(status=RunStatus.CANCELLED, detail=reason, completed_at=now)])
            return True
        return await end_run(tx, run.id, why=reason, now=now, pace=self.pace)

    async def note_execution(self, run_id: RunId, *, execution: str, trace_id: str | None) -> None:
        """Which execution a run became, as its worker learned. The first stands: telling it again changes nothing."""
        text_of(execution, field="run_id")

        async def work(tx: Transaction) -> None:
            await tx.runs.note_execution(run_id, execution=execution, trace_id=trace_id)

        await self.storage.transact(work, single=True)

    async def execution_error(self, execution: str) -> str | None:
        """What the execution says went wrong, in words."""
        found = await self.storage.read(lambda tx: tx.executions.by_run(text_of(execution, field="run_id")))
        return None if found is None else found.error_message

    async def last_of(self, schedule_ids: Sequence[ScheduleId]) -> Mapping[ScheduleId, Run]:
        """Of each schedule the newest slot that ran or runs; for a page of schedules that the caller may see."""
        whole_number_of(len(schedule_ids), field="schedule_ids", least=0, most=MOST_LISTED)

        async def work(tx: Transaction) -> Mapping[ScheduleId, Run]:
            return await tx.runs.last_of(schedule_ids)

        return await self.storage.read(work) if schedule_ids else {}

    async def attempts(self, run_id: str, *, owner: str | None) -> Sequence[Job | FinishedJob]:
        """The jobs of a run that are still kept, first to last."""

        async def work(tx: Transaction) -> Sequence[Job | FinishedJob]:
            run = await _known(tx, run_id, owner)
            return [] if run.job_id is None else await tx.audit.attempts(run.job_id)

        return await self.storage.read(work)


async def _known(tx: Transaction, run_id: str, owner: str | None) -> Run:
    run = await tx.ledger.get(RunId(text_of(run_id, field="id")))
    if run is None or owner not in (None, run.owner):
        raise UnknownRun(RunId(run_id))
    return run


async def _require_schedule(tx: Transaction, schedule_id: ScheduleId, owner: str | None) -> None:
    """One of the caller's, or its tombstone."""
    schedule = await tx.schedules.get(schedule_id)
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(schedule_id)
