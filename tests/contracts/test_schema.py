"""Both databases hold the same tables with the same columns and the same guards."""

import asyncio

import apsw
import asyncpg
import pytest

from tests.contracts.world import World

pytestmark = pytest.mark.store("postgres")

Columns = dict[str, list[tuple[str, str, bool]]]

_TYPES = {"TEXT": "text", "INTEGER": "bigint", "text": "text", "bigint": "bigint", "BLOB": "bytea"}
# Each database notes by itself which of its migrations ran; only SQLite puts jobs aside.
_OWN = {"schema_migrations", "arrivals"}


async def _postgres_columns(url: str) -> Columns:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns "
            "WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
        )
    finally:
        await connection.close()
    columns: Columns = {}
    for table, column, kind, nullable in rows:
        columns.setdefault(table, []).append((column, _TYPES.get(kind, kind), nullable))
    return columns


def _sqlite_columns(connection: apsw.Connection) -> Columns:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {
        table: [
            (name, _TYPES.get(kind, kind), not required)
            for _, name, kind, required, *_ in connection.execute(f"PRAGMA table_xinfo({table})")
        ]
        for table in tables
    }


async def _sqlite_connection(world: World) -> apsw.Connection:
    await world.open()
    storage = world.queue.storage
    connection: apsw.Connection = storage._connection  # type: ignore[attr-defined]
    return connection


@pytest.mark.req("GRAPH-15")
def test_both_stores_have_the_same_tables_and_columns(fresh_postgres_url: str) -> None:
    async def both() -> tuple[Columns, Columns]:
        from duly.storage.postgres.storage import PostgresStorage

        await (await PostgresStorage.open(fresh_postgres_url, listening=False)).close()
        world = World("sqlite", ":memory:")
        try:
            return _sqlite_columns(await _sqlite_connection(world)), await _postgres_columns(fresh_postgres_url)
        finally:
            await world.close()

    sqlite, postgres = asyncio.run(both())

    assert set(sqlite) - _OWN == set(postgres) - _OWN
    for table in set(sqlite) - _OWN:
        assert sqlite[table] == postgres[table], table


@pytest.mark.req("GRAPH-15")
def test_no_table_has_a_column_for_a_login_a_token_or_a_secret(fresh_postgres_url: str) -> None:
    from duly.storage.postgres.storage import PostgresStorage

    async def tables() -> Columns:
        await (await PostgresStorage.open(fresh_postgres_url, listening=False)).close()
        return await _postgres_columns(fresh_postgres_url)

    columns = asyncio.run(tables())

    assert {"schedules", "schedule_revisions", "schedule_runs", "schedule_gaps", "schedule_arrears"} <= set(columns)
    assert {"execution_grants", "charge_receipts", "billing_accounts", "virtual_keys", "holds"} <= set(columns)
    named = {name for table in columns.values() for name, _, _ in table}
    assert not named & {"session_id", "oauth_token", "api_key", "secret"}


@pytest.mark.req("GRAPH-15")
def test_both_stores_have_the_same_indexes(fresh_postgres_url: str) -> None:
    async def both() -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        from duly.storage.postgres.storage import PostgresStorage

        await (await PostgresStorage.open(fresh_postgres_url, listening=False)).close()
        connection = await asyncpg.connect(fresh_postgres_url)
        world = World("sqlite", ":memory:")
        try:
            rows = await connection.fetch(
                "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = current_schema() "
                "AND indexname NOT LIKE '%_pkey'"
            )
            sqlite = (await _sqlite_connection(world)).execute(
                "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' AND name NOT LIKE 'sqlite_autoindex%'"
            )
            return set(sqlite), {(table, index) for table, index in rows}
        finally:
            await connection.close()
            await world.close()

    sqlite, postgres = asyncio.run(both())

    assert sqlite == postgres


@pytest.mark.req("GRAPH-15")
@pytest.mark.req("GRAPH-02")
def test_grants_and_receipts_have_the_columns_that_others_read(fresh_postgres_url: str) -> None:
    from duly.storage.postgres.storage import PostgresStorage

    async def look() -> tuple[Columns, set[tuple[str, str]]]:
        await (await PostgresStorage.open(fresh_postgres_url, listening=False)).close()
        connection = await asyncpg.connect(fresh_postgres_url)
        try:
            keys = await connection.fetch(
                "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            )
        finally:
            await connection.close()
        return await _postgres_columns(fresh_postgres_url), {(table, other) for table, other in keys}

    columns, foreign_keys = asyncio.run(look())

    assert [name for name, _, _ in columns["execution_grants"]] == [
        "id",
        "user_id",
        "billing_account_id",
        "scopes",
        "expires_at",
        "revoked_at",
        "created_at",
        "last_used_at",
    ]
    assert {"billing_account_id", "virtual_key_id", "run_id", "attempt", "unit", "source_reference"} <= {
        name for name, _, _ in columns["charge_receipts"]
    }
    assert {
        ("execution_grants", "billing_accounts"),
        ("execution_grants", "users"),
        ("billing_accounts", "users"),
        ("schedules", "users"),
        ("schedules", "execution_grants"),
        ("charge_receipts", "billing_accounts"),
        ("charge_receipts", "virtual_keys"),
        ("charge_receipts", "holds"),
        ("holds", "billing_accounts"),
    } <= foreign_keys
