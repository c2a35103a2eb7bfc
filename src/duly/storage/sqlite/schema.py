"""Brings a SQLite database to the schema this package knows."""

from collections.abc import Sequence

import apsw

from duly.ports.clock import Clock
from duly.storage.migrations import Applied, Migration, SchemaMismatch, SchemaTooOld, pending_migrations
from duly.storage.sqlite.faults import translated

_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""


def migrate(connection: apsw.Connection, known: Sequence[Migration], *, path: str, clock: Clock) -> None:
    """All that is missing, in one transaction. The caller holds the file lock, so a second process finds it
    done.
    """
    try:
        applied = _applied(connection)
        if not pending_migrations(known, applied):
            return
        if not applied:
            _refuse_foreign_tables(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(_TABLE)
            for migration in pending_migrations(known, _applied(connection)):
                _apply(connection, migration, clock)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except apsw.Error as error:
        raise translated(error, path) from error


def refuse_other_schema(connection: apsw.Connection, known: Sequence[Migration], *, path: str) -> None:
    try:
        pending = pending_migrations(known, _applied(connection))
    except apsw.Error as error:
        raise translated(error, path) from error
    if pending:
        raise SchemaTooOld(found=pending[0].version - 1, needed=len(known))


def schema_version(connection: apsw.Connection) -> int:
    return max((version for version, _ in _applied(connection)), default=0)


def _refuse_foreign_tables(connection: apsw.Connection, path: str) -> None:
    """A file without our history but with tables is somebody's, and not to be written to."""
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (name,) in connection.execute(tables):
        raise SchemaMismatch(f"{path}: holds the table {name!r} of another program; choose another file")


def _applied(connection: apsw.Connection) -> list[Applied]:
    if not connection.table_exists(None, "schema_migrations"):
        return []
    return [
        (int(version), str(name))
        for version, name in connection.execute("SELECT version, name FROM schema_migrations ORDER BY version")
    ]


def _apply(connection: apsw.Connection, migration: Migration, clock: Clock) -> None:
    connection.execute(migration.sql)
    if not connection.in_transaction:
        raise RuntimeError(f"migration {migration.version:04}_{migration.name} ended the transaction it runs in")
    connection.execute(
        "INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)",
        (migration.version, migration.name, clock.now()),
    )
