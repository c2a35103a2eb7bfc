"""Every list is a page from an index: among thousands that have ended, hardly more is read than is shown."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import apsw
import asyncpg
import pytest

from duly.domain.groups import GroupStatus
from duly.domain.ids import Owner, PoolName, ScheduleId
from duly.domain.jobs import JobStatus
from duly.domain.reviews import ReviewState
from duly.domain.runs import RunKind, RunStatus
from duly.domain.webhooks.deliveries import DeliveryState
from duly.ports.retries import FailedAsked
from duly.ports.runs import RunsAsked
from duly.ports.storage import Transaction
from duly.storage.executor import Executor, Row
from duly.storage.statements import load_statements
from duly.storage.transaction import SqlTransaction
from tests.contracts.history import ENDED, write_history
from tests.contracts.world import World

_PAGE = 10
# A page takes some hundred steps of SQLite, all that has ended ten thousands.
_MOST_STEPS = 3_000
# A page for each of the four ways to end, and for each of those the rows it is joined with.
_MOST_ROWS = 8 * _PAGE

ANN, BOB, CAT = Owner("ann"), Owner("bob"), Owner("cat")
RARE, UNUSED = PoolName("ollama"), PoolName("flows")
Asking = Callable[[Transaction], Awaitable[Sequence[Any]]]


class _Overheard:
    """An executor that keeps what was asked of it."""

    rerun = False

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def fetch(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        self.asked.append((name, parameters))
        return await self._inner.fetch(name, **parameters)

    async def each(self, name: str, rows: Sequence[Row], /, **constants: Any) -> Sequence[Row]:
        raise NotImplementedError(name, rows, constants)

    def wake(self, topic: str) -> None:
        raise NotImplementedError(topic)


async def _shown(world: World, asking: Asking) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
    heard: list[tuple[str, dict[str, Any]]] = []

    async def work(tx: Transaction) -> int:
        assert isinstance(tx, SqlTransaction)
        overheard = _Overheard(tx._x)
        found = await asking(SqlTransaction(overheard, tx._hot))
        heard[:] = overheard.asked
        return len(found)

    return await world.queue.storage.read(work), heard


async def _effort(world: World, asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Those of the statements that read more than a page takes."""
    storage: Any = world.queue.storage
    if world.store == "sqlite":
        return [name for name, values in asked if _steps(storage, name, values) > _MOST_STEPS]
    connection = await asyncpg.connect(world.place)
    try:
        return [name for name, values in asked if await _rows_read(connection, name, values) > _MOST_ROWS]
    finally:
        await connection.close()


def _steps(storage: Any, name: str, values: dict[str, Any]) -> int:
    statement, found = load_statements("sqlite")[name], list[int]()
    connection = storage._connection

    def note(event: dict[str, Any]) -> None:
        found.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    try:
        connection.execute(statement.sql, statement.bind(values)).fetchall()
    finally:
        connection.trace_v2(0, None)
    return sum(found)


async def _rows_read(connection: asyncpg.Connection, name: str, values: dict[str, Any]) -> int:
    """The worse of the two ways in which Postgres may plan it."""
    statement, found = load_statements("postgres")[name], list[int]()
    for mode in ("force_custom_plan", "force_generic_plan"):
        await connection.execute(f"SET plan_cache_mode = {mode}")
        explained = f"EXPLAIN (ANALYZE, TIMING off, FORMAT json) {statement.sql}"
        ((plan,),) = await connection.fetch(explained, *statement.bind(values))
        found.append(_read_by(json.loads(plan)[0]["Plan"]))
    return max(found)


def _read_by(node: dict[str, Any]) -> int:
    below = sum(map(_read_by, node.get("Plans", ())))
    if "Scan" not in node["Node Type"] or "Relation Name" not in node:
        return below
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return below + int((node["Actual Rows"] + removed) * node["Actual Loops"])


def _runs(**asked: Any) -> Asking:
    return lambda tx: tx.runs.newest(RunsAsked(**asked), before=None, most=_PAGE)


def _ended(owner: Owner | None = None, pool: PoolName | None = None, status: JobStatus | None = None) -> Asking:
    return lambda tx: tx.jobs.ended(owner, pool=pool, status=status, before=None, most=_PAGE)


def _failed(owner: Owner | None = None, **asked: Any) -> Asking:
    return lambda tx: tx.retries.failed(owner, FailedAsked(**asked), before=None, most=_PAGE)


def _groups(owner: Owner | None = None, status: GroupStatus | None = None) -> Asking:
    return lambda tx: tx.groups.listed(owner, status=status, before=None, most=_PAGE)


def _reviews(owner: Owner | None = None, state: ReviewState | None = None) -> Asking:
    return lambda tx: tx.reviews.newest(owner, state=state, before=None, most=_PAGE)


def _deliveries(
    owner: Owner | None = None,
    endpoint: str | None = None,
    state: DeliveryState | None = None,
    subject: str | None = None,
) -> Asking:
    return lambda tx: tx.webhooks.deliveries(
        owner, endpoint_id=endpoint, subject_id=subject, state=state, before=None, most=_PAGE
    )


_WHOSE = (None, ANN, BOB, CAT)
_CASES: dict[str, Asking] = {
    **{
        f"ended of {who} in {pool} as {status}": _ended(who, pool, status)
        for who, pools in ((None, (None,)), (ANN, (None,)), (BOB, (None, RARE)), (CAT, (None, RARE)))
        for pool in pools
        for status in (None, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.SKIPPED, JobStatus.CANCELLED)
    },
    **{
        f"ended in {pool} as {status}": _ended(None, pool, status)
        for pool in (RARE, UNUSED)
        for status in (JobStatus.FAILED, JobStatus.SKIPPED, JobStatus.CANCELLED)
    },
    **{f"failed of {who} in {pool}": _failed(who, pool=pool) for who in _WHOSE for pool in (None, RARE, UNUSED)},
    **{
        f"runs of {who} as {status}": _runs(owner=who, status=status) for who in _WHOSE for status in (None, *RunStatus)
    },
    **{
        f"runs of {which} as {status}": _runs(schedule_id=ScheduleId(which), status=status)
        for which in ("of-ann", "of-bob")
        for status in (None, *RunStatus)
    },
    **{f"runs of {who}, {kind}": _runs(owner=who, kind=kind) for who in _WHOSE for kind in RunKind},
    **{
        f"runs of {which}, {kind}": _runs(schedule_id=ScheduleId(which), kind=kind)
        for which in ("of-ann", "of-bob")
        for kind in RunKind
    },
    **{f"groups of {who} as {status}": _groups(who, status) for who in _WHOSE for status in (None, *GroupStatus)},
    **{f"reviews of {who} as {state}": _reviews(who, state) for who in _WHOSE for state in (None, *ReviewState)},
    **{
        f"deliveries of {who} as {state}": _deliveries(who, state=state)
        for who in _WHOSE
        for state in (None, *DeliveryState)
    },
    **{
        f"deliveries to {which} as {state}": _deliveries(endpoint=which, state=state)
        for which in ("of-ann", "of-bob", "of-cat")
        for state in (None, *DeliveryState)
    },
    "deliveries about one job": _deliveries(subject="job_00000007"),
    "events of an execution": lambda tx: tx.executions.events("exec", after=ENDED - 30, most=_PAGE),
    "executions that wait": lambda tx: tx.executions.waiting(after="", most=_PAGE),
}


@pytest.mark.req("GRAPH-11")
async def test_a_page_of_any_list_reads_hardly_more_than_it_shows(store: str, place: str) -> None:
    world = World(store, place)
    await world.open()
    try:
        await write_history("sqlite" if store == "sqlite" else "postgres", world.rows)
        costly: dict[str, list[str]] = {}
        for name, asking in _CASES.items():
            _, asked = await _shown(world, asking)
            assert asked, name
            if found := await _effort(world, asked):
                costly[name] = found
        assert costly == {}
    finally:
        await world.close()
