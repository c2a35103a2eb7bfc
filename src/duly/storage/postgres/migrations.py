"""Brings the schema up to date: all that is missing in one transaction, by one process at a time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import ClassVar

import asyncpg

from duly.domain.errors import Conflict, Refused
from duly.domain.instants import Instant
from duly.storage.postgres.connections import Connection
from duly.storage.postgres.errors import DRIVER_ERRORS, translated

# Any number will do, as long as every release of Duly takes the same.
_LOCK = 0x64756C79

_FILE = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")

# Changing a big table takes as long as it takes; waiting for a lock blocks everyone behind us, so that ends.
_SETTINGS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'"
_ANSWER_SECONDS = 3_600.0

_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at bigint NOT NULL
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    sql: str


class SchemaTooNew(Conflict):
    """A newer Duly has migrated this database; an older one could misread what it finds there."""

    code: ClassVar[str] = "schema_too_new"

    def __init__(self, *, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the database has schema version {found}, this duly knows versions up to {known}: upgrade duly"
        )


class SchemaTooOld(Conflict):
    """The schema lacks what this Duly needs, and it was told not to migrate."""

    code: ClassVar[str] = "schema_too_old"

    def __init__(self, *, found: int, needed: int) -> None:
        self.found = found
        self.needed = needed
        super().__init__(
            f"the database has schema version {found}, this duly needs {needed}:"
            " start it once with migrations on, as a role that may create tables"
        )


class SchemaMismatch(Conflict):
    """The database was migrated by other files than ours, so what its tables mean is unknown."""

    code: ClassVar[str] = "schema_mismatch"


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


def load_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """All `NNNN_name.sql` of the folder in order; a gap, a double or a stray name is a broken package."""
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")] if folder.is_dir() else []
    migrations = tuple(_read(file) for file in sorted(found, key=lambda file: file.name))
    for expected, migration in enumerate(migrations, start=1):
        if migration.version != expected:
            raise ValueError(f"migration {migration.version:04}_{migration.name} stands where {expected:04} belongs")
    return migrations


def pending_migrations(known: Sequence[Migration], applied: Sequence[tuple[int, str]]) -> tuple[Migration, ...]:
    """What is still to apply; refuses a database whose history is not a beginning of ours."""
    newest = max((version for version, _ in applied), default=0)
    if newest > len(known):
        raise SchemaTooNew(found=newest, known=len(known))
    for migration, (version, name) in zip(known, sorted(applied), strict=False):
        if (migration.version, migration.name) != (version, name):
            raise SchemaMismatch(
                f"the database was migrated by {version:04}_{name}, this duly has"
                f" {migration.version:04}_{migration.name}: use the duly that created it, or restore a backup"
            )
    return tuple(known[len(applied) :])


async def _apply(connection: Connection, migration: Migration, now: Instant) -> None:
    try:
        await connection.raw.execute(migration.sql, timeout=_ANSWER_SECONDS)
    except asyncpg.PostgresError as error:
        error.add_note(f"in migration {migration.version:04}_{migration.name}")
        raise
    record = "INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)"
    await connection.raw.execute(record, migration.version, migration.name, now)


def _read(file: Traversable) -> Migration:
    match = _FILE.match(file.name)
    if match is None:
        raise ValueError(f"migration {file.name} is not named NNNN_name.sql")
    return Migration(version=int(match[1]), name=match[2], sql=file.read_text(encoding="utf-8"))
