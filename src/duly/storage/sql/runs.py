"""Runs in SQL, as callers look for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from duly.domain.ids import RunId, ScheduleId
from duly.domain.runs import Run, RunKind, RunStatus
from duly.ports.runs import RunsAsked
from duly.storage.executor import Executor, Row
from duly.storage.sql.rows import PAST_EVERY_ID
from duly.storage.sql.schedule_rows import run_from_row

_IN_FLIGHT, _ASKED_FOR, _ASIDE = "_in_flight", "_asked_for", "_aside"


class SqlRuns:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def newest(self, asked: RunsAsked, *, before: RunId | None, most: int) -> list[Run]:
        filters = {
            "status": asked.status and asked.status.value,
            "kind": asked.kind and asked.kind.value,
            "before": before or PAST_EVERY_ID,
            "most": most,
        }
        return [run_from_row(row) for row in await self._newest(asked, filters)]

    async def _newest(self, asked: RunsAsked, filters: dict[str, Any]) -> Sequence[Row]:
        """Each way of asking has its index, so each has its statement."""
        rare = _rare(asked)
        if asked.schedule_id is not None:
            return await self._x.fetch(f"newest_runs{rare}_of_schedule", schedule_id=asked.schedule_id, **filters)
        if rare in {_IN_FLIGHT, _ASKED_FOR}:
            return await self._x.fetch(f"newest_runs{rare}", owner=asked.owner, **filters)
        if asked.owner is not None:
            return await self._x.fetch(f"newest_runs{rare}_of_owner", owner=asked.owner, **filters)
        return await self._x.fetch(f"newest_runs{rare}", **filters)

    async def note_execution(self, run_id: RunId, *, execution: str, trace_id: str | None) -> None:
        await self._x.fetch("note_execution", id=run_id, run_id=execution, trace_id=trace_id)

    async def last_of(self, schedule_ids: Sequence[ScheduleId]) -> Mapping[ScheduleId, Run]:
        rows = await self._x.each("last_runs", [(schedule_id,) for schedule_id in schedule_ids])
        return {run.schedule_id: run for run in map(run_from_row, rows)}


def _rare(asked: RunsAsked) -> str:
    """Which of the few that are not slots gone well, where an index holds those alone."""
    if asked.status in {RunStatus.PENDING, RunStatus.RUNNING}:
        return _IN_FLIGHT
    if asked.status not in {None, RunStatus.SUCCESS}:
        return _ASIDE
    return "" if asked.kind in {None, RunKind.SLOT} else _ASKED_FOR
