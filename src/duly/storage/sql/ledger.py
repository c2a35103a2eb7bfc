"""The ledger in SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from duly.domain.cadence import Cadence
from duly.domain.coverage import Span, extended
from duly.domain.ids import JobId, RunId, ScheduleId
from duly.domain.instants import Instant, Micros
from duly.domain.openings import InFlight
from duly.domain.runs import Arrears, Gap, Run, RunStatus
from duly.ports.ledger import Agenda
from duly.storage.executor import Executor
from duly.storage.sql.schedule_rows import (
    arrears_from_row,
    arrears_row,
    cadence_from_row,
    gap_from_row,
    gap_row,
    run_from_row,
    run_row,
)
from duly.storage.sql.topics import SCHEDULES

_FIRST = Instant(-(2**63))
_LAST = Instant(2**63 - 1)


class SqlLedger:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, runs: Sequence[Run]) -> set[RunId]:
        return {row[0] for row in await self._x.each("insert_runs", [run_row(run) for run in runs])}

    async def get(self, run_id: RunId) -> Run | None:
        for row in await self._x.fetch("run_by_id", id=run_id):
            return run_from_row(row)
        return None

    async def slot(self, schedule_id: ScheduleId, scheduled_for: Instant) -> Run | None:
        for row in await self._x.fetch("run_of_slot", schedule_id=schedule_id, scheduled_for=scheduled_for):
            return run_from_row(row)
        return None

    async def by_key(self, schedule_id: ScheduleId, own_key: str) -> list[Run]:
        rows = await self._x.fetch("runs_by_key", schedule_id=schedule_id, own_key=own_key)
        return [run_from_row(row) for row in rows]

    async def of_schedule(
        self, schedule_id: ScheduleId, *, before: Instant | None, most: int, since: Instant | None = None
    ) -> list[Run]:
        rows = await self._x.fetch(
            "runs_of_schedule",
            schedule_id=schedule_id,
            before=_LAST if before is None else before,
            since=_FIRST if since is None else since,
            most=most,
        )
        return [run_from_row(row) for row in rows]

    async def in_flight(self, schedule_ids: Sequence[ScheduleId]) -> Mapping[ScheduleId, InFlight]:
        rows = await self._x.each("runs_in_flight", [(schedule_id,) for schedule_id in schedule_ids])
        found: dict[ScheduleId, InFlight] = {}
        for schedule_id, _, run_id, status in sorted(rows):
            runs = found.setdefault(schedule_id, InFlight())
            (runs.running if status == RunStatus.RUNNING else runs.waiting).append(run_id)
        return found

    async def close(self, runs: Sequence[Run]) -> None:
        rows = [
            (run.id, run.status.value, run.reason and run.reason.value, run.detail, run.error_message, run.completed_at)
            for run in runs
        ]
        await self._x.each("close_runs", rows)

    async def add_gaps(self, gaps: Sequence[Gap]) -> None:
        rows = await self._x.each("last_gaps", [(schedule_id,) for schedule_id in {gap.schedule_id for gap in gaps}])
        last = {row[0]: (gap_from_row(row[:7]), cadence_from_row(row[7:])) for row in rows}
        await self._x.each("save_gaps", [gap_row(_joined(gap, last.pop(gap.schedule_id, None))) for gap in gaps])

    async def gaps(self, schedule_id: ScheduleId, *, since: Instant | None = None) -> list[Gap]:
        rows = await self._x.fetch("gaps_of", schedule_id=schedule_id, since=_FIRST if since is None else since)
        return [gap_from_row(row) for row in rows]

    async def owe(self, arrears: Sequence[Arrears]) -> None:
        await self._x.each("save_arrears", [arrears_row(owed) for owed in arrears if owed.count])
        await self._x.each("forget_arrears", [(owed.schedule_id, owed.first) for owed in arrears if not owed.count])
        self._x.wake(SCHEDULES)

    async def arrears_due(self, now: Instant, most: int) -> list[Arrears]:
        return [arrears_from_row(row) for row in await self._x.fetch("due_arrears", now=now, most=most)]

    async def arrears(self, schedule_id: ScheduleId) -> list[Arrears]:
        return [arrears_from_row(row) for row in await self._x.fetch("arrears_of", schedule_id=schedule_id)]

    async def keep_alive(self, now: Instant, *, outage_after: Micros) -> Span:
        await self._x.fetch("lock_coverage")
        rows = await self._x.fetch("last_span")
        last = Span(*rows[0]) if rows else None
        span, is_new = extended(last, now, outage_after=outage_after)
        if last is None or is_new or span.start == last.start:
            await self._x.fetch("save_span", started_at=span.start, alive_at=span.end)
        else:
            await self._x.fetch("fill_silence", now=now)
        return span

    async def coverage(self, since: Instant) -> list[Span]:
        return [Span(*row) for row in await self._x.fetch("spans_since", since=since)]

    async def revoke_later(self, job_id: JobId, *, at: Instant, reason: str) -> None:
        await self._x.fetch("revoke_later", job_id=job_id, due_at=at, reason=reason)
        self._x.wake(SCHEDULES)

    async def revocations_due(self, now: Instant, most: int) -> list[tuple[JobId, str]]:
        due = [(job_id, reason) for job_id, reason in await self._x.fetch("due_revocations", now=now, most=most)]
        await self._x.each("forget_revocations", [(job_id,) for job_id, _ in due])
        return due

    async def agenda(self) -> Agenda:
        (row,) = await self._x.fetch("agenda")
        return Agenda(*row)


def _joined(gap: Gap, last: tuple[Gap, Cadence] | None) -> Gap:
    if last is None or not gap.continues(*last):
        return gap
    earlier, _ = last
    return replace(gap, first=earlier.first, count=earlier.count + gap.count)
