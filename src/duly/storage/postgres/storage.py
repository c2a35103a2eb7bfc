"""The storage port on PostgreSQL."""

from collections.abc import Sequence
from typing import Self, TypeVar

from duly.domain.jobs import Entry
from duly.ports.storage import Work
from duly.storage.migrations import Migration
from duly.storage.postgres.clock import PostgresClock
from duly.storage.postgres.database import PostgresDatabase
from duly.storage.postgres.hot_path import PostgresHotPath
from duly.storage.postgres.limits import Limits
from duly.storage.postgres.wakeups import PostgresWakeups
from duly.storage.statements import Statement
from duly.storage.transaction import SqlTransaction

T = TypeVar("T")

_HOT_PATH = PostgresHotPath()


class PostgresStorage:
    """Bound to the event loop it was opened on; another thread, such as the heartbeat's, opens its own.

    Work that awaits anything but its transaction keeps a connection and its locks meanwhile. That cannot be
    seen here; the server ends it after `Limits.idle_in_transaction`.
    """

    __slots__ = ("_database",)

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        listen_url: str | None = None,
        limits: Limits | None = None,
        statements: dict[str, Statement] | None = None,
        migrations: Sequence[Migration] | None = None,
        migrate: bool = True,
        listening: bool = True,
        pooled: bool = False,
    ) -> Self:
        database = await PostgresDatabase.open(
            url,
            listen_url=listen_url,
            limits=limits,
            statements=statements,
            migrations=migrations,
            migrating=migrate,
            listening=listening,
            pooled=pooled,
        )
        return cls(database)

    @property
    def clock(self) -> PostgresClock:
        return self._database.clock

    @property
    def wakeups(self) -> PostgresWakeups:
        return self._database.wakeups

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        return await self._database.transact(lambda executor: work(SqlTransaction(executor, _HOT_PATH)), single=single)

    def put_at_once(self, entry: Entry) -> None:
        """To write is to wait for the server."""

    async def read(self, work: Work[T]) -> T:
        # By its text: whoever asks for one thing today asks for one thing tomorrow.
        kind = getattr(work, "__code__", None)
        return await self._database.read(lambda executor: work(SqlTransaction(executor, _HOT_PATH)), kind=kind)

    async def which(self) -> tuple[object, ...]:
        """The database it leads to, to be compared with another connection's."""
        (row,) = await self._database.read(lambda executor: executor.fetch("which_database"))
        return tuple(row)

    async def close(self) -> None:
        await self._database.close()
