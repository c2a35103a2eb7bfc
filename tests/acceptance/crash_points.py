"""Ends this very process, as `kill -9` does, at a named point of a transaction: the product knows nothing of it.

A point is a statement that writes, by its name, and a moment: `written`, once it has run and before its transaction
commits, or `committed`, once that has and before anybody hears of it.
"""

import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

from duly.storage.executor import Row
from duly.storage.postgres import connections
from duly.storage.postgres.executor import PostgresExecutor
from duly.storage.sqlite.batch import Committer
from duly.storage.sqlite.executor import SqliteExecutor
from duly.storage.statements import Statement

_WRITES = re.compile(r"\b(INSERT INTO|DELETE FROM|UPDATE \w+.*?\bSET)\b", re.DOTALL)
WRITTEN, COMMITTED = "written", "committed"
MOMENTS = (WRITTEN, COMMITTED)


class CrashPoint(NamedTuple):
    """The `nth` time that the moment comes."""

    statement: str
    moment: str
    nth: int = 1

    @classmethod
    def read(cls, text: str) -> Self:
        statement, moment, nth = text.split(":")
        return cls(statement, moment, int(nth))

    def __str__(self) -> str:
        return f"{self.statement}:{self.moment}:{self.nth}"


class Watch:
    """Hears of each statement, and of its transaction's commit; tells `met` of each that writes and is new."""

    def __init__(self, point: CrashPoint | None, met: Callable[[str], None]) -> None:
        self._point = point
        self._met = met
        self._known: set[str] = set()
        self._counts: Counter[tuple[str, str]] = Counter()
        # By connection: the heart has one of its own, and beats while others write.
        self._uncommitted: defaultdict[int, set[str]] = defaultdict(set)

    def began(self, connection: object) -> None:
        self._uncommitted[id(connection)] = set()

    def ran(self, connection: object, statement: Statement) -> None:
        if not _writes(statement):
            return
        name = statement.name
        self._uncommitted[id(connection)].add(name)
        if name not in self._known:
            self._known.add(name)
            self._met(name)
        self.reach(name, WRITTEN)

    def committed(self, connection: object) -> None:
        for statement in sorted(self._uncommitted.pop(id(connection), ())):
            self.reach(statement, COMMITTED)

    def reach(self, statement: str, moment: str) -> None:
        self._counts[statement, moment] += 1
        if self._point == (statement, moment, self._counts[statement, moment]):
            os.kill(os.getpid(), signal.SIGKILL)


@cache
def _writes(statement: Statement) -> bool:
    return _WRITES.search(statement.sql) is not None


def install(watch: Watch) -> None:
    _watch_sqlite(watch)
    _watch_postgres(watch)


def _watch_sqlite(watch: Watch) -> None:
    fetch, each, execute = SqliteExecutor.fetch, SqliteExecutor.each, Committer._execute

    async def watched_fetch(self: SqliteExecutor, name: str, /, **parameters: Any) -> Sequence[Row]:
        rows = await fetch(self, name, **parameters)
        watch.ran(self._connection, self._statements[name])
        return rows

    async def watched_each(self: SqliteExecutor, name: str, given: Sequence[Row], /, **constants: Any) -> Sequence[Row]:
        rows = await each(self, name, given, **constants)
        if given:
            watch.ran(self._connection, self._statements[name])
        return rows

    def watched_execute(self: Committer[Any], sql: str) -> None:
        execute(self, sql)
        if sql.startswith("BEGIN"):
            watch.began(self.connection)
        elif sql == "COMMIT":
            watch.committed(self.connection)

    _replace(SqliteExecutor, "fetch", watched_fetch)
    _replace(SqliteExecutor, "each", watched_each)
    _replace(Committer, "_execute", watched_execute)


def _watch_postgres(watch: Watch) -> None:
    run, execute = PostgresExecutor._run, connections.Connection.execute

    async def watched_run(self: PostgresExecutor, statement: Statement, values: tuple[Any, ...]) -> Sequence[Row]:
        rows = await run(self, statement, values)
        watch.ran(self._connection, statement)
        if self._phase == "committing":  # a single statement, which commits by itself
            watch.committed(self._connection)
        return rows

    async def watched_execute(self: connections.Connection, sql: str, phase: Any) -> None:
        await execute(self, sql, phase)
        if sql.startswith("BEGIN"):
            watch.began(self)
        elif sql == "COMMIT":
            watch.committed(self)

    _replace(PostgresExecutor, "_run", watched_run)
    _replace(connections.Connection, "execute", watched_execute)


def _replace(owner: type, name: str, watched: Callable[..., Any]) -> None:
    setattr(owner, name, watched)
