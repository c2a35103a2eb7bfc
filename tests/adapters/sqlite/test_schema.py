"""The schema moves forward only, in known steps, once."""

import asyncio
from pathlib import Path

import apsw
import pytest

from duly.storage.migrations import (
    Migration,
    SchemaMismatch,
    SchemaTooNew,
    load_migrations,
    pending_migrations,
)
from duly.storage.sqlite.database import SqliteDatabase
from duly.storage.sqlite.storage import SqliteStorage
from duly.system.clock import SystemClock
from tests.adapters.sqlite.tally import MIGRATIONS, STATEMENTS, tally_at

pytestmark = pytest.mark.req("DEC-002")


def _open(path: Path, *migrations: Migration) -> None:
    database = SqliteDatabase(
        path,
        clock=SystemClock(),
        statements=STATEMENTS,
        migrations=migrations,
        begin=lambda executor: executor,
        inline=True,
    )
    asyncio.run(database.close())


def _second(sql: str, name: str = "second") -> Migration:
    return Migration(version=2, name=name, sql=sql)


def test_a_second_open_applies_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "t.db"

    _open(path, *MIGRATIONS)
    _open(path, *MIGRATIONS)
    _open(path, *MIGRATIONS, _second("CREATE TABLE more (id INTEGER PRIMARY KEY);"))

    rows = apsw.Connection(str(path)).execute("SELECT version, name, applied_at > 0 FROM schema_migrations")
    assert rows.fetchall() == [(1, "tally", 1), (2, "second", 1)]


@pytest.mark.req("DEC-002", error=True)
def test_a_newer_schema_is_refused_with_both_versions_and_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    _open(path, *MIGRATIONS, _second("CREATE TABLE more (id INTEGER PRIMARY KEY);"))

    with pytest.raises(SchemaTooNew, match="schema version 2, this duly knows versions up to 1: upgrade duly"):
        _open(path, *MIGRATIONS)


@pytest.mark.req("DEC-002", error=True)
def test_a_renamed_migration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    _open(path, *MIGRATIONS)

    with pytest.raises(SchemaMismatch, match="migrated by 0001_tally, this duly has 0001_other"):
        _open(path, Migration(version=1, name="other", sql=MIGRATIONS[0].sql))


@pytest.mark.req("DEC-002", error=True)
@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("CREATE TABLE more (id INTEGER); CREATE TABLE more (id INTEGER);", apsw.SQLError),
        ("CREATE TABLE more (id INTEGER); COMMIT;", RuntimeError),
    ],
    ids=["fails", "commits by itself"],
)
def test_a_migration_that_fails_is_undone_and_not_recorded(tmp_path: Path, sql: str, error: type[Exception]) -> None:
    path = tmp_path / "t.db"
    _open(path, *MIGRATIONS)

    with pytest.raises(error):
        _open(path, *MIGRATIONS, _second(sql))

    versions = apsw.Connection(str(path)).execute("SELECT version FROM schema_migrations").fetchall()
    assert versions == [(1,)]
    _open(path, *MIGRATIONS)


def test_files_load_in_order(tmp_path: Path) -> None:
    (tmp_path / "0002_more.sql").write_text("SELECT 2;")
    (tmp_path / "0001_first.sql").write_text("SELECT 1;")
    (tmp_path / "notes.txt").write_text("not a migration")

    loaded = load_migrations(tmp_path)

    assert [(m.version, m.name, m.sql) for m in loaded] == [
        (1, "first", "SELECT 1;"),
        (2, "more", "SELECT 2;"),
    ]
    assert pending_migrations(loaded, [(1, "first")]) == loaded[1:]


@pytest.mark.req("DEC-002", error=True)
@pytest.mark.parametrize(
    "names", [["0002_late.sql"], ["0001_a.sql", "0001_b.sql"], ["0001_a.sql", "0003_c.sql"], ["1_a.sql"]]
)
def test_a_gap_a_double_and_a_stray_name_are_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1;")

    with pytest.raises(ValueError, match="migration"):
        load_migrations(tmp_path)


@pytest.mark.req("DEC-002", error=True)
def test_a_history_with_a_hole_is_refused() -> None:
    known = [Migration(version=n, name=f"m{n}", sql="") for n in (1, 2, 3)]

    with pytest.raises(SchemaMismatch):
        pending_migrations(known, [(1, "m1"), (3, "m3")])


def test_memory_is_migrated_too() -> None:
    async def scenario() -> None:
        async with tally_at(":memory:") as tally:
            assert tally._connection.table_exists(None, "entries")

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    apsw.Connection(str(path)).execute("CREATE TABLE letters (id INTEGER)")

    with pytest.raises(SchemaMismatch, match=r"theirs\.db: holds the table 'letters' of another program"):
        asyncio.run(SqliteStorage.open(path))

    tables = apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    assert tables == [("letters",)]
