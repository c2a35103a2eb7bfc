"""A tiny table and its statements, so that the adapter is tested apart from the real ones."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from duly.storage.migrations import Migration
from duly.storage.postgres.database import PostgresDatabase
from duly.storage.postgres.limits import Limits
from duly.storage.statements import parse_statements

STATEMENTS = parse_statements(
    [
        """
-- name: put
INSERT INTO notes (id, body) VALUES (:id, :body)

-- name: put_all
-- columns: body, id
INSERT INTO notes (id, body) SELECT id, body || :suffix
  FROM unnest(:id::text[], :body::text[]) AS given (id, body) RETURNING id, body

-- name: get
SELECT id, body FROM notes WHERE id = :id

-- name: backend
SELECT pg_backend_pid()

-- name: count
SELECT count(*) FROM notes

-- name: touch
UPDATE notes SET body = body || '.' WHERE id = :id

-- name: misspelt
SELECT bodie FROM notes

-- name: serializable
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE

-- name: fail_with
SELECT fail_with(:state)

-- name: sleep
SELECT pg_sleep(:seconds)
"""
    ],
    "postgres",
)

MIGRATIONS = [
    Migration(
        version=1,
        name="notes",
        sql="""
CREATE TABLE notes (
  id text CONSTRAINT notes_id PRIMARY KEY,
  body text CONSTRAINT notes_body_is_short CHECK (length(body) < 100)
);
CREATE FUNCTION fail_with(state text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = state; END $$;
""",
    )
]


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresDatabase]:
    options = {"statements": STATEMENTS, "migrations": MIGRATIONS} | options
    database = await PostgresDatabase.open(url, **options)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A plain connection: the witness that does not go through the code under test."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def put(database: PostgresDatabase, note: str, body: str = "", **options: Any) -> None:
    await database.transact(lambda ex: ex.fetch("put", id=note, body=body), **options)


async def until(fact: Callable[[], Awaitable[Any]], *, seconds: float = 10) -> Any:
    """Waits for a fact of the outside world that nothing announces."""
    async with asyncio.timeout(seconds):
        while not (found := await fact()):  # noqa: ASYNC110 - nothing sets an event out there
            await asyncio.sleep(0.005)
    return found


def limits(**seconds: float) -> Limits:
    connections = int(seconds.pop("connections", 8))
    durations: dict[str, Any] = {name: int(value * 1_000_000) for name, value in seconds.items()}
    return Limits(connections=connections, **durations)
