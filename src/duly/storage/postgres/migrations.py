"""Brings the schema up to date: all that is missing in one transaction, by one process at a time."""

from collections.abc import Sequence
from importlib.resources import files
from typing import ClassVar

import asyncpg

from duly.domain.errors import Refused
from duly.domain.instants import Instant
from duly.storage.migrations import Migration, SchemaTooOld, load_migrations, pending_migrations
from duly.storage.postgres.connections import Connection
from duly.storage.postgres.errors import DRIVER_ERRORS, translated

# Any number will do, as long as every release of Duly takes the same.
_LOCK = 0x64756C79

# Changing a big table takes as long as it takes; waiting for a lock blocks everyone behind us, so that ends.
_SETTINGS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'"
_ANSWER_SECONDS = 3_600.0

_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at bigint NOT NULL
)"""


class MigrationRefused(Refused):
    """The database role may not change the schema."""

    code: ClassVar[str] = "migration_refused"


async def migrate(connection: Connection, known: Sequence[Migration], *, now: Instant) -> None:
    # Most starts find nothing to do, and then need neither the lock nor the right to create.
    if not pending_migrations(known, await applied_migrations(connection)):
        return
    try:
        async with connection.raw.transaction():
            await connection.raw.execute(_SETTINGS)
            await connection.raw.execute(f"SELECT pg_advisory_xact_lock({_LOCK})", timeout=_ANSWER_SECONDS)
            await connection.raw.execute(_TABLE)
            for migration in pending_migrations(known, await applied_migrations(connection)):
                await _apply(connection, migration, now)
    except asyncpg.InsufficientPrivilegeError as error:
        raise MigrationRefused(
            f"the database role may not change the schema ({error.args[0]}): start duly once as the owner,"
            " or GRANT CREATE ON SCHEMA to the role"
        ) from error
    except DRIVER_ERRORS as error:
        # What was applied is recorded with it, so migrating again is safe even if this commit went through.
        raise translated(error, "writing", closed=connection.closed) from error


async def refuse_other_schema(connection: Connection, known: Sequence[Migration]) -> None:
    pending = pending_migrations(known, await applied_migrations(connection))
    if pending:
        raise SchemaTooOld(found=pending[0].version - 1, needed=len(known))


async def applied_migrations(connection: Connection) -> list[tuple[int, str]]:
    try:
        if await connection.raw.fetchval("SELECT to_regclass('schema_migrations')") is None:
            return []
        rows = await connection.raw.fetch("SELECT version, name FROM schema_migrations ORDER BY version")
    except BaseException as error:
        raise translated(error, "reading", closed=connection.closed) from error
    return [(version, name) for version, name in rows]


def known_migrations() -> tuple[Migration, ...]:
    return load_migrations(files("duly.storage.postgres").joinpath("migrations"))


async def _apply(connection: Connection, migration: Migration, now: Instant) -> None:
    try:
        await connection.raw.execute(migration.sql, timeout=_ANSWER_SECONDS)
    except asyncpg.PostgresError as error:
        error.add_note(f"in migration {migration.version:04}_{migration.name}")
        raise
    record = "INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)"
    await connection.raw.execute(record, migration.version, migration.name, now)
