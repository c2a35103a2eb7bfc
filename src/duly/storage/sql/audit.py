"""What the audit reads, in SQL."""

from duly.domain.audit import AuditedRun, LiveJob, Stray
from duly.domain.ids import JobId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import FinishedJob, Job
from duly.domain.runs import Arrears, Gap
from duly.domain.schedules import Revision, Schedule
from duly.ports.audit import Among
from duly.storage.executor import Executor, Row
from duly.storage.sql.rows import finished_from_row, job_from_row
from duly.storage.sql.schedule_rows import (
    arrears_from_row,
    gap_from_row,
    revision_from_row,
    run_from_row,
    schedule_from_row,
)

_FIRST = -(2**63)


class SqlAudit:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def schedules(self, *, after: ScheduleId | None, most: int, owner: str | None = None) -> list[Schedule]:
        if owner is None:
            rows = await self._x.fetch("audited_schedules", after=after or "", most=most)
        else:
            rows = await self._x.fetch("audited_schedules_of_owner", owner=owner, after=after or "", most=most)
        return [schedule_from_row(row) for row in rows]

    async def revisions(self, among: Among, *, after: Revision | None, most: int) -> list[Revision]:
        schedule_id, number = (among.first, _FIRST) if after is None else (after.schedule_id, after.number)
        rows = await self._x.fetch(
            "audited_revisions", schedule_id=schedule_id, number=number, last=among.last, most=most
        )
        return [revision_from_row(row) for row in rows]

    async def runs(self, among: Among, *, since: Instant, after: AuditedRun | None, most: int) -> list[AuditedRun]:
        run = None if after is None else after.run
        rows = await self._x.fetch(
            "audited_runs",
            schedule_id=among.first if run is None else run.schedule_id,
            scheduled_for=_FIRST if run is None else run.scheduled_for,
            own_key="" if run is None else run.own_key,
            id="" if run is None else run.id,
            last=among.last,
            since=since,
            most=most,
        )
        return [_audited_from_row(row) for row in rows]

    async def gaps(self, among: Among, *, since: Instant, after: Gap | None, most: int) -> list[Gap]:
        return [gap_from_row(row) for row in await self._spans("audited_gaps", among, since, after, most)]

    async def arrears(self, among: Among, *, since: Instant, after: Arrears | None, most: int) -> list[Arrears]:
        return [arrears_from_row(row) for row in await self._spans("audited_arrears", among, since, after, most)]

    async def _spans(
        self, statement: str, among: Among, since: Instant, after: Gap | Arrears | None, most: int
    ) -> list[Row]:
        schedule_id, first_slot = (among.first, _FIRST) if after is None else (after.schedule_id, after.first)
        rows = await self._x.fetch(
            statement, schedule_id=schedule_id, first_slot=first_slot, last=among.last, since=since, most=most
        )
        return list(rows)

    async def strays(self, *, after: JobId | None, most: int) -> tuple[list[Stray], JobId | None]:
        rows = await self._x.fetch("audited_jobs_through", after=after or "", most=most)
        through = rows[0][0]
        if through is None:
            return [], None
        rows = await self._x.fetch("stray_jobs", after=after or "", through=through)
        return [_stray_from_row(row) for row in rows], JobId(through)

    async def last_gap(self, schedule_id: ScheduleId, *, through: Instant) -> Gap | None:
        for row in await self._x.fetch("last_gap_through", schedule_id=schedule_id, through=through):
            return gap_from_row(row)
        return None

    async def attempts(self, chain: JobId) -> list[Job | FinishedJob]:
        ended = [finished_from_row(row) for row in await self._x.fetch("finished_chain", chain=chain)]
        live = [job_from_row(row) for row in await self._x.fetch("live_chain", chain=chain)]
        attempts: list[Job | FinishedJob] = [*ended, *live]
        # Those that were asked for by hand after the run's end are not its own.
        return [job for job in attempts if job.ledger_run is not None]


def _audited_from_row(row: Row) -> AuditedRun:
    *run, live_id, session, seen_at, lease, completed = row
    live = None if live_id is None else LiveJob(id=live_id, session=session, seen_at=seen_at, lease=lease)
    return AuditedRun(run=run_from_row(tuple(run)), live=live, completed=completed)


def _stray_from_row(row: Row) -> Stray:
    job_id, run_id, schedule_id, scheduled_for, named = row
    return Stray(job_id=job_id, run_id=run_id, schedule_id=schedule_id, slot=scheduled_for // SECOND, named=named)
