"""The schema: brought up to date once, by one process, and never misread."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from duly.storage.migrations import Migration, SchemaMismatch, SchemaTooNew, SchemaTooOld, load_migrations
from duly.storage.postgres.migrations import MigrationRefused
from tests.adapters.postgres.notes import connected, opened


def _migration(version: int, sql: str, name: str = "") -> Migration:
    return Migration(version=version, name=name or f"step_{version}", sql=sql)


ONE = _migration(1, "CREATE TABLE one (n int); INSERT INTO one VALUES (1)")
TWO = _migration(2, "INSERT INTO one VALUES (2)")


def test_each_migration_is_applied_once_and_recorded(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url, migrations=[ONE]):
            pass
        async with (
            opened(fresh_postgres_url, migrations=[ONE, TWO]) as database,
            connected(fresh_postgres_url) as witness,
        ):
            assert await witness.fetch("SELECT n FROM one ORDER BY n") == [(1,), (2,)]
            rows = await witness.fetch("SELECT * FROM schema_migrations ORDER BY version")
            assert [(row["version"], row["name"]) for row in rows] == [(1, "step_1"), (2, "step_2")]
            assert all(0 <= database.clock.now() - row["applied_at"] < 60_000_000 for row in rows)

    asyncio.run(scenario())


def test_processes_that_start_at_once_migrate_once(fresh_postgres_url: str) -> None:
    slow = _migration(1, "SELECT pg_sleep(0.2); CREATE TABLE one (n int); INSERT INTO one VALUES (1)")

    async def start() -> None:
        async with opened(fresh_postgres_url, migrations=[slow, TWO]):
            pass

    async def scenario() -> None:
        await asyncio.gather(*(start() for _ in range(5)))
        async with connected(fresh_postgres_url) as witness:
            assert await witness.fetch("SELECT n FROM one ORDER BY n") == [(1,), (2,)]

    asyncio.run(scenario())


@pytest.mark.parametrize("migrating", [True, False])
def test_a_newer_schema_is_refused_with_both_versions(fresh_postgres_url: str, migrating: bool) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url, migrations=[ONE, TWO]):
            pass
        with pytest.raises(SchemaTooNew, match=r"version 2, this duly knows versions up to 1: upgrade duly"):
            await opened(fresh_postgres_url, migrations=[ONE], migrating=migrating).__aenter__()

    asyncio.run(scenario())


def test_an_older_schema_is_refused_when_told_not_to_migrate(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url, migrations=[ONE]):
            pass
        with pytest.raises(SchemaTooOld, match="version 1, this duly needs 2"):
            await opened(fresh_postgres_url, migrations=[ONE, TWO], migrating=False).__aenter__()

    asyncio.run(scenario())


def test_a_renamed_migration_is_refused(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url, migrations=[ONE]):
            pass
        with pytest.raises(SchemaMismatch, match="migrated by 0001_step_1, this duly has 0001_other"):
            await opened(fresh_postgres_url, migrations=[_migration(1, "", "other")]).__aenter__()

    asyncio.run(scenario())


def test_a_failing_migration_leaves_nothing_and_is_named(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        broken = _migration(2, "INSERT INTO nowhere VALUES (1)")
        with pytest.raises(asyncpg.UndefinedTableError) as failure:
            await opened(fresh_postgres_url, migrations=[ONE, broken]).__aenter__()
        assert failure.value.__notes__ == ["in migration 0002_step_2"]
        async with connected(fresh_postgres_url) as witness:
            assert await witness.fetchval("SELECT to_regclass('one')") is None
            assert await witness.fetchval("SELECT to_regclass('schema_migrations')") is None

    asyncio.run(scenario())


def test_a_role_that_may_not_create_hears_what_to_do_and_may_start_later(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with connected(fresh_postgres_url) as witness:
            await witness.execute("DROP ROLE IF EXISTS duly_reader; CREATE ROLE duly_reader LOGIN")
            parts = urlsplit(fresh_postgres_url)
            humble = parts._replace(netloc="duly_reader:@").geturl()
            with pytest.raises(MigrationRefused, match="GRANT CREATE ON SCHEMA"):
                await opened(humble, migrations=[ONE]).__aenter__()
            async with opened(fresh_postgres_url, migrations=[ONE]):
                pass
            await witness.execute("GRANT SELECT ON schema_migrations TO duly_reader")
            async with opened(humble, migrations=[ONE]):
                pass
            await witness.execute("DROP OWNED BY duly_reader; DROP ROLE duly_reader")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["0001_a.sql", "0003_c.sql"], "0003_c stands where 0002 belongs"),
        (["0001_a.sql", "0001_b.sql"], "0001_b stands where 0002 belongs"),
        (["first.sql"], "not named NNNN_name.sql"),
    ],
)
def test_a_broken_set_of_files_is_refused(tmp_path: Path, names: list[str], complaint: str) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(ValueError, match=complaint):
        load_migrations(tmp_path)
