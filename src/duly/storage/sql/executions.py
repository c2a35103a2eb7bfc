"""Executions of graphs, in SQL."""

from collections.abc import Sequence
from typing import Any

from duly.domain.executions import (
    Claim,
    Ended,
    EventKind,
    Execution,
    ExecutionEvent,
    ExecutionStatus,
    WaitsFor,
)
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.payloads import Payload
from duly.ports.executions import Lease
from duly.storage.executor import Executor, Row
from duly.storage.sql.topics import execution_topic


class SqlExecutions:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, execution: Execution) -> bool:
        return bool(await self._x.fetch("claim_execution", hash=execution.request_hash, **_named(execution)))

    async def bury(self, tombstone: Execution) -> bool:
        error = {"error_code": tombstone.error_code, "error_message": tombstone.error_message}
        return bool(await self._x.fetch("bury_execution", **error, **_named(tombstone)))

    async def replace_tombstone(self, execution: Execution) -> None:
        await self._x.fetch("replace_tombstone", hash=execution.request_hash, **_named(execution))

    async def prune_tombstones(self, before: Instant, most: int) -> int:
        return len(await self._x.fetch("prune_tombstones", before=before, most=most))

    async def by_key(self, key: str) -> Execution | None:
        return await self._one("execution_by_key", key=key)

    async def lock_key(self, key: str) -> Execution | None:
        return await self._one("execution_by_key_locked", key=key)

    async def by_run(self, run_id: str) -> Execution | None:
        return await self._one("execution_by_run", run_id=run_id)

    async def lock_run(self, run_id: str) -> Execution | None:
        return await self._one("execution_by_run_locked", run_id=run_id)

    async def begin_attempt(self, claim: Claim, lease: Lease, *, reply: Payload | None) -> None:
        await self._x.fetch(
            "begin_attempt",
            key=claim.key,
            attempt=claim.attempt,
            token=claim.token,
            era=lease.era,
            expires_at=lease.expires_at,
            reply=reply,
        )

    async def renew(self, claim: Claim, lease: Lease) -> bool:
        rows = await self._x.fetch(
            "renew_execution", key=claim.key, token=claim.token, era=lease.era, expires_at=lease.expires_at
        )
        return bool(rows)

    async def stands(self, run_id: str, token: int) -> bool:
        return bool(await self._x.fetch("execution_stands", run_id=run_id, token=token))

    async def end(self, claim: Claim, ended: Ended, *, now: Instant) -> Execution | None:
        self._x.wake(execution_topic(claim.run_id))
        return await self._one(
            "end_execution",
            key=claim.key,
            token=claim.token,
            ok=int(bool(ended.ok)),
            error_code=ended.error_code,
            error_message=ended.error_message,
            result=ended.result,
            now=now,
        )

    async def suspend(self, claim: Claim, ended: Ended, waits_for: WaitsFor) -> Execution | None:
        self._x.wake(execution_topic(claim.run_id))
        return await self._one(
            "suspend_execution",
            key=claim.key,
            token=claim.token,
            # The column's check is older than call-backs, and what has a time to be called back by is no review.
            waits_for=(WaitsFor.REVIEW if waits_for is WaitsFor.CALL_BACK else waits_for).value,
            result=ended.result,
            called_back_by=ended.called_back_by,
        )

    async def await_with(self, run_id: str, job_id: JobId) -> None:
        await self._x.fetch("await_call_back_with", run_id=run_id, job_id=job_id)

    async def reply(self, run_id: str, reply: Payload) -> None:
        await self._x.fetch("reply_to_execution", run_id=run_id, reply=reply)

    async def add_events(self, events: Sequence[ExecutionEvent]) -> None:
        rows = [(each.run_id, each.seq, each.attempt, each.at, each.kind.value, each.data) for each in events]
        await self._x.each("insert_execution_events", rows)
        for run_id in {each.run_id for each in events}:
            self._x.wake(execution_topic(run_id))

    async def last_event(self, run_id: str) -> int:
        return int((await self._x.fetch("last_event_of", run_id=run_id))[0][0])

    async def events(self, run_id: str, *, after: int, most: int) -> list[ExecutionEvent]:
        rows = await self._x.fetch("events_after", run_id=run_id, seq=after, most=most)
        return [
            ExecutionEvent(run, seq, attempt, at, EventKind(kind), data) for run, seq, attempt, at, kind, data in rows
        ]

    async def waiting(self, *, after: str, most: int) -> list[Execution]:
        return [_from_row(row) for row in await self._x.fetch("waiting_executions", after=after, most=most)]

    async def _one(self, statement: str, **names: Any) -> Execution | None:
        rows = await self._x.fetch(statement, **names)
        return _from_row(rows[0]) if rows else None


def _named(execution: Execution) -> dict[str, Any]:
    return {
        "key": execution.key,
        "request": execution.request,
        "graph_id": execution.graph_id,
        "grant_id": execution.grant_id,
        "run_id": execution.run_id,
        "trace_id": execution.trace_id,
        "token": execution.token,
        "era": execution.era,
        "expires_at": execution.expires_at,
        "now": execution.created_at,
    }


def _from_row(row: Row) -> Execution:
    return Execution(
        key=row[0],
        request_hash=row[1],
        request=row[2],
        graph_id=row[3],
        grant_id=row[4],
        run_id=row[5],
        trace_id=row[6],
        status=ExecutionStatus(row[7]),
        ok=None if row[8] is None else bool(row[8]),
        error_code=row[9],
        error_message=row[10],
        result=row[11],
        waits_for=_waits_for(row[12], row[20]),
        reply=row[13],
        attempt=row[14],
        token=row[15],
        era=row[16],
        expires_at=row[17],
        created_at=row[18],
        completed_at=row[19],
        called_back_by=row[20],
        waiting_job=row[21],
        spent=row[22],
    )


def _waits_for(kept: str | None, called_back_by: Instant | None) -> WaitsFor | None:
    if kept is None:
        return None
    return WaitsFor(kept) if called_back_by is None else WaitsFor.CALL_BACK
