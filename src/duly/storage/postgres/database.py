"""One process's way to one Postgres database: connections, clock and hints, opened and closed together."""

import asyncio
from collections.abc import Sequence
from typing import Self, TypeVar

import asyncpg

from duly.domain.instants import SECOND, Micros
from duly.storage.migrations import Migration
from duly.storage.postgres.clock import PostgresClock, RoundTrip, ask_database
from duly.storage.postgres.connections import Connections, connect
from duly.storage.postgres.errors import Interrupted
from duly.storage.postgres.limits import Limits
from duly.storage.postgres.migrations import known_migrations, migrate, refuse_other_schema
from duly.storage.postgres.patience import Patience
from duly.storage.postgres.transactions import ExecutorWork, Transactions
from duly.storage.postgres.wakeups import PostgresWakeups
from duly.storage.statements import Statement, load_statements
from duly.system.ticks import SystemTicks, Ticks

T = TypeVar("T")

_LAST_TRANSACTIONS = Micros(10 * SECOND)


class PostgresDatabase:
    """Bound to the event loop it was opened on; another thread opens its own."""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        listen_url: str | None = None,
        limits: Limits | None = None,
        statements: dict[str, Statement] | None = None,
        migrations: Sequence[Migration] | None = None,
        migrating: bool = True,
        listening: bool = True,
        pooled: bool = False,
        ticks: Ticks | None = None,
    ) -> Self:
        """`pooled`: `url` leads to a transaction pooler; `listen_url` then leads past it."""
        limits = limits or Limits()
        if statements is None:
            statements = load_statements("postgres")
        database = cls(url, listen_url or url, limits, statements, pooled=pooled, ticks=ticks or SystemTicks())
        known = known_migrations() if migrations is None else migrations
        try:
            await database._start(known, migrating=migrating, listening=listening)
        except BaseException:
            await database.close()
            raise
        return database

    def __init__(
        self,
        url: str,
        listen_url: str,
        limits: Limits,
        statements: dict[str, Statement],
        *,
        pooled: bool,
        ticks: Ticks,
    ) -> None:
        async def connect_to_listen() -> asyncpg.Connection:
            return await connect(listen_url, limits)

        async def ask() -> RoundTrip:
            return await ask_database(self._connections, ticks)

        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._connections = Connections(url, limits, pooled=pooled)
        self.clock = PostgresClock(ask, ticks)
        self.wakeups = PostgresWakeups(connect_to_listen)
        self._transactions = Transactions(self._connections, statements, limits, self.wakeups, pooled=pooled)

    async def transact(self, work: ExecutorWork[T], *, single: bool = False) -> T:
        self._refuse_other_loop()
        return await self._transactions.transact(work, single=single)

    async def read(self, work: ExecutorWork[T], *, kind: object = None) -> T:
        self._refuse_other_loop()
        return await self._transactions.read(work, kind=kind)

    async def close(self) -> None:
        # Transactions first: the last of them announce, too.
        await self._connections.close(wait=_LAST_TRANSACTIONS)
        await self.wakeups.close()

    async def _start(self, known: Sequence[Migration], *, migrating: bool, listening: bool) -> None:
        """Waits for a database that is still starting, as containers started together do."""
        patience = Patience(self._limits.patience)
        while True:
            try:
                await self.clock.measure()
                await self._prepare_schema(known, migrating=migrating)
                if listening:
                    await self.wakeups.start()
            except Interrupted as trouble:
                failure = trouble
            else:
                return
            await patience.pause_or_give_up(failure)

    async def _prepare_schema(self, known: Sequence[Migration], *, migrating: bool) -> None:
        connection = await self._connections.acquire()
        failed = True
        try:
            if migrating:
                await migrate(connection, known, now=self.clock.now())
            else:
                await refuse_other_schema(connection, known)
            failed = False
        finally:
            self._connections.release(connection, discard=failed)

    def _refuse_other_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("this store belongs to another event loop: open one on this loop")
