"""A tiny database of its own for testing the adapter: entries, counters and a few traps."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from duly.ports.clock import Clock
from duly.storage.executor import Executor
from duly.storage.migrations import Migration
from duly.storage.sqlite.database import SqliteDatabase
from duly.storage.statements import parse_statements
from duly.system.clock import SystemClock

Tally = SqliteDatabase[Executor]

STATEMENTS = parse_statements(
    [
        """
-- name: add_entry
INSERT INTO entries (id, amount) VALUES (:id, :amount)
-- name: add_entries
-- columns: id, amount
INSERT INTO entries (id, amount) VALUES (:id, :amount + :bonus) RETURNING amount, id
-- name: add_plain_entries
-- columns: id, amount
INSERT INTO entries (id, amount) VALUES (:id, :amount)
-- name: add_free_entry
-- columns: id amount
INSERT OR IGNORE INTO entries (id, amount) VALUES (:id, :amount)
-- name: add_child
INSERT INTO children (entry) VALUES (:entry)
-- name: list_entries
SELECT id, amount FROM entries ORDER BY id
-- name: bump
INSERT INTO counters (name, value) VALUES (:name, 1)
ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value
-- name: read_counter
SELECT value FROM counters WHERE name = :name
"""
    ],
    "sqlite",
)

MIGRATIONS = (
    Migration(
        version=1,
        name="tally",
        sql="""
-- A comment; with a semicolon.
CREATE TABLE entries (
    id TEXT PRIMARY KEY,
    amount INTEGER NOT NULL CONSTRAINT amount_is_not_negative CHECK (amount >= 0)
) STRICT;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE children (
    id INTEGER PRIMARY KEY,
    entry TEXT NOT NULL REFERENCES entries (id) DEFERRABLE INITIALLY DEFERRED
) STRICT;
/* A trigger that ends the whole transaction; not only its statement. */
CREATE TRIGGER bomb BEFORE INSERT ON entries WHEN new.id = 'bomb'
BEGIN
    SELECT 1;
    SELECT RAISE(ROLLBACK, 'the bomb went off');
END;
""",
    ),
)


def open_tally(path: Path | str, *, clock: Clock | None = None, inline: bool = False) -> Tally:
    return SqliteDatabase(
        path,
        clock=clock or SystemClock(),
        statements=STATEMENTS,
        migrations=MIGRATIONS,
        begin=lambda executor: executor,
        inline=inline,
    )


@asynccontextmanager
async def tally_at(path: Path | str, *, clock: Clock | None = None, inline: bool = False) -> AsyncIterator[Tally]:
    tally = await asyncio.to_thread(open_tally, path, clock=clock, inline=inline)
    try:
        yield tally
    finally:
        await tally.close()


def adding(entry: str, amount: int = 1) -> Callable[[Executor], Awaitable[str]]:
    async def work(tx: Executor) -> str:
        await tx.fetch("add_entry", id=entry, amount=amount)
        return entry

    return work


def bumping(name: str) -> Callable[[Executor], Awaitable[int]]:
    async def work(tx: Executor) -> int:
        return int((await tx.fetch("bump", name=name))[0][0])

    return work


async def entries(tally: Tally) -> dict[str, int]:
    async def work(tx: Executor) -> dict[str, int]:
        return {str(entry): int(amount) for entry, amount in await tx.fetch("list_entries")}

    return await tally.read(work)


async def counter(tally: Tally, name: str) -> int:
    async def work(tx: Executor) -> int:
        rows = await tx.fetch("read_counter", name=name)
        return int(rows[0][0]) if rows else 0

    return await tally.read(work)


class Commits:
    """Counts what SQLite really committed."""

    def __init__(self, tally: Tally) -> None:
        self.count = 0
        tally._connection.set_commit_hook(self._counted)

    def _counted(self) -> bool:
        self.count += 1
        return False


def kinds(outcomes: Sequence[Any]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


async def until(fact: Callable[[], bool]) -> None:
    """Lets everything else go on until the fact holds."""
    async with asyncio.timeout(30):
        while not fact():  # noqa: ASYNC110  # facts of other threads have no event to wait for
            await asyncio.sleep(0)
