"""Duly's tables in a SQLite file."""

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Self

from duly.domain.jobs import Entry
from duly.ports.clock import Clock
from duly.storage.executor import Executor
from duly.storage.migrations import load_migrations
from duly.storage.sql.jobs import arrival, newcomer
from duly.storage.sqlite.arrivals import Arrivals
from duly.storage.sqlite.connection import MEMORY
from duly.storage.sqlite.database import SqliteDatabase
from duly.storage.sqlite.hot_path import SqliteHotPath
from duly.storage.statements import load_statements
from duly.storage.transaction import SqlTransaction
from duly.system.clock import SystemClock

_HOT_PATH = SqliteHotPath()


def begin(executor: Executor) -> SqlTransaction:
    return SqlTransaction(executor, _HOT_PATH)


class SqliteStorage(SqliteDatabase[SqlTransaction]):
    """Implements `duly.ports.storage.Storage`, and `backup`."""

    @classmethod
    async def open(cls, path: str | Path, *, clock: Clock | None = None, inline: bool = False) -> Self:
        """Creates the file if need be, readable by its owner only, and migrates it; the folder must exist."""
        if inline or str(path) == MEMORY:
            return cls._opened(path, clock, inline)
        # Another process may be migrating, which is worth waiting for, but not on the event loop.
        return await asyncio.to_thread(cls._opened, path, clock, inline)

    def put_at_once(self, entry: Entry) -> bool | None:
        new = entry.new
        if new.key is None and not (new.lane or new.resources or entry.ledger_run):
            return self.change_at_once("insert_arrival", *arrival(entry))
        return self.change_at_once("insert_jobs", *newcomer(entry))

    @classmethod
    def _opened(cls, path: str | Path, clock: Clock | None, inline: bool) -> Self:
        statements = load_statements("sqlite")
        return cls(
            path,
            clock=clock or SystemClock(),
            statements=statements,
            migrations=load_migrations(files("duly.storage.sqlite").joinpath("migrations")),
            begin=begin,
            inline=inline,
            arrivals=Arrivals(statements),
        )
