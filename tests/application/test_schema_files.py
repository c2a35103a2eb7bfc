"""What the migrations say, read as they are written: the same tables on both databases, and no credentials."""

import re
from importlib.resources import files

import pytest

_TABLE = re.compile(r"CREATE TABLE (\w+) \((.*?)\n\)", re.DOTALL)
_COLUMN = re.compile(r"^  (\w+) +(?:TEXT|INTEGER|BLOB|text|bigint|bytea)\b", re.MULTILINE)
_OF_ONE = {"arrivals"}


def _tables(database: str) -> dict[str, list[str]]:
    folder = files("duly.storage") / database / "migrations"
    texts = sorted((each.name, each.read_text(encoding="utf-8")) for each in folder.iterdir() if each.name[0].isdigit())
    return {table: _COLUMN.findall(body) for _, text in texts for table, body in _TABLE.findall(text)}


@pytest.mark.req("GRAPH-15")
def test_the_documented_tables_are_made_on_both_databases() -> None:
    sqlite, postgres = _tables("sqlite"), _tables("postgres")

    assert set(sqlite) - _OF_ONE == set(postgres) - _OF_ONE
    named = {"users", "execution_grants", "schedules", "schedule_runs", "execution_requests", "charge_receipts"}
    assert named <= set(sqlite)
    for table in named:
        assert sqlite[table] == postgres[table], table
    assert {"id", "user_id", "billing_account_id", "scopes", "expires_at", "revoked_at", "created_at"} <= set(
        sqlite["execution_grants"]
    )
    assert sqlite["users"] == ["id", "created_at"]


@pytest.mark.req("GRAPH-15", error=True)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_no_table_is_given_a_column_for_a_login_or_a_secret(database: str) -> None:
    columns = {column for table in _tables(database).values() for column in table}

    assert len(columns) > 50
    assert not columns & {"session_id", "oauth_token", "api_key", "secret"}
