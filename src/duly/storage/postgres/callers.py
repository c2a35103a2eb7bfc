"""A store on somebody else's connection: what it writes is part of the caller's transaction, and goes with it."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

import asyncpg

from duly.domain.errors import InvalidInput
from duly.domain.jobs import Entry
from duly.ports.storage import Work
from duly.storage.postgres.clock import PostgresClock
from duly.storage.postgres.connections import Connection
from duly.storage.postgres.errors import Interrupted, Phase
from duly.storage.postgres.executor import PostgresExecutor
from duly.storage.postgres.hot_path import PostgresHotPath
from duly.storage.postgres.storage import PostgresStorage
from duly.storage.postgres.wakeups import PostgresWakeups, packed
from duly.storage.statements import Statement, load_statements
from duly.storage.transaction import SqlTransaction

T = TypeVar("T")

_HOT_PATH = PostgresHotPath()
# Another may have made its job the head of the lane at the same moment; looked at again, it is simply there.
_MOST_RUNS = 5


class Session(Protocol):
    """What is asked of a caller's connection, whichever driver made it."""

    @property
    def closed(self) -> bool: ...

    @property
    def in_transaction(self) -> bool:
        """Whether the next statement will be part of one."""

    async def fetch(self, statement: Statement, values: tuple[Any, ...], phase: Phase) -> list[tuple[Any, ...]]: ...

    async def execute(self, sql: str, phase: Phase) -> None: ...


class AsyncpgSession(Connection):
    __slots__ = ()

    def __init__(self, raw: asyncpg.Connection) -> None:
        super().__init__(raw, cached=False)

    @property
    def in_transaction(self) -> bool:
        return bool(self.raw.is_in_transaction())


class CallersStorage:
    """Each work is a savepoint of the caller's transaction; outside of one it is a transaction of its own."""

    __slots__ = ("_is_known", "_session", "_statements", "_storage")

    def __init__(self, storage: PostgresStorage, connection: object) -> None:
        self._storage = storage
        self._session = _session_of(connection)
        self._statements = load_statements("postgres")
        self._is_known = False

    @property
    def clock(self) -> PostgresClock:
        return self._storage.clock

    @property
    def wakeups(self) -> PostgresWakeups:
        return self._storage.wakeups

    async def transact(self, work: Work[T], *, single: bool = False) -> T:  # noqa: ARG002 - a savepoint is around it anyway
        await self._require_ours()
        runs = 0
        while True:
            try:
                return await self._run(work)
            except Interrupted as trouble:
                runs += 1
                if trouble.connection_lost or runs == _MOST_RUNS:
                    raise

    def put_at_once(self, entry: Entry) -> None:
        """To write is to wait for the server."""

    async def read(self, work: Work[T]) -> T:
        return await self.transact(work)

    async def close(self) -> None:
        """It is the caller's."""

    async def _run(self, work: Work[T]) -> T:
        begin, end, undo = _steps(is_part=self._session.in_transaction)
        await self._execute(begin)
        executor = PostgresExecutor(self._session, self._statements, "writing")  # type: ignore[arg-type] # as much of one
        try:
            answer = await work(SqlTransaction(executor, _HOT_PATH))
            executor.raise_swallowed_failure()
            if executor.topics:
                await executor.fetch("notify_in_transaction", payload=packed(executor.topics))
            await self._execute(end)
        except BaseException:
            # If it fails, the caller's transaction is lost as it is.
            with suppress(Exception):
                await asyncio.shield(self._execute(undo))
            raise
        return answer

    async def _execute(self, sql: str) -> None:
        with _its_failure_told():
            await self._session.execute(sql, "writing")

    async def _require_ours(self) -> None:
        if self._session.closed:
            raise InvalidInput("connection", "is closed", fix="pass one that is open")
        if self._is_known:
            return
        # Before anything is written: jobs in another database would be nobody's.
        with _its_failure_told():
            (row,) = await self._session.fetch(self._statements["which_database"], (), "reading")
        if tuple(row) != await self._storage.which():
            raise InvalidInput(
                "connection", "leads to another database, or to another table `jobs`", fix="connect it to Duly's"
            )
        self._is_known = True


@contextmanager
def _its_failure_told() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if getattr(error, "sqlstate", None) == "25P02":
            raise InvalidInput("connection", "its transaction has failed", fix="roll it back first") from error
        raise


def _steps(*, is_part: bool) -> tuple[str, str, str]:
    if is_part:
        return "SAVEPOINT duly", "RELEASE SAVEPOINT duly", "ROLLBACK TO SAVEPOINT duly"
    return "BEGIN", "COMMIT", "ROLLBACK"


def _session_of(connection: object) -> Session:
    if isinstance(connection, asyncpg.Connection):
        if getattr(connection, "_loop", None) not in (None, asyncio.get_running_loop()):
            raise InvalidInput("connection", "belongs to another event loop", fix="open it in this one")
        return AsyncpgSession(connection)
    if (psycopg := sys.modules.get("psycopg")) is not None:
        # Only who has loaded it can have a connection of it.
        from duly.storage.postgres.psycopg_sessions import AsyncSession, SyncSession  # noqa: PLC0415

        if isinstance(connection, psycopg.AsyncConnection):
            return AsyncSession(connection)
        if isinstance(connection, psycopg.Connection):
            return SyncSession(connection)
    raise InvalidInput(
        "connection", f"is a {type(connection).__name__}", fix="pass a connection of asyncpg or psycopg 3"
    )
