"""A read of one look needs no transaction; one of several sees one snapshot all the same, and none of them writes."""

import asyncio

import pytest

from duly.storage.postgres.connections import Connection
from duly.storage.postgres.errors import Phase
from duly.storage.postgres.executor import PostgresExecutor
from tests.adapters.postgres.notes import STATEMENTS, connected, opened, put

KIND = object()


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was sent besides statements: where transactions begin and end."""
    sent: list[str] = []
    execute = Connection.execute

    async def noting(self: Connection, sql: str, phase: Phase) -> None:
        sent.append(sql)
        await execute(self, sql, phase)

    monkeypatch.setattr(Connection, "execute", noting)
    return sent


def test_one_look_is_one_message(fresh_postgres_url: str, executed: list[str]) -> None:
    async def scenario() -> list[str]:
        async with opened(fresh_postgres_url) as database:
            await put(database, "a", "first", single=True)
            executed.clear()
            [(_, body)] = await database.read(lambda ex: ex.fetch("get", id="a"), kind=KIND)
            assert not executed
            await database.read(lambda ex: ex.fetch("get", id="a"))
            return [body, *executed]

    body, begin, commit = asyncio.run(scenario())

    assert body == "first"
    assert begin.startswith("BEGIN")
    assert commit == "COMMIT"


def test_several_looks_see_one_snapshot_from_the_first_time_on(fresh_postgres_url: str, executed: list[str]) -> None:
    """The work is run again in a transaction when it looks a second time, and later at once."""
    seen: list[tuple[str, str]] = []
    looks = 0

    async def scenario() -> None:
        nonlocal looks
        async with opened(fresh_postgres_url) as database, connected(fresh_postgres_url) as witness:

            async def work(executor: PostgresExecutor) -> None:
                nonlocal looks
                [(_, first)] = await executor.fetch("get", id="a")
                looks += 1
                await witness.execute("UPDATE notes SET body = body || '.'")
                [(_, second)] = await executor.fetch("get", id="a")
                seen.append((first, second))

            await put(database, "a")
            executed.clear()
            await database.read(work, kind=KIND)
            assert looks == 2
            await database.read(work, kind=KIND)
            assert looks == 3

    asyncio.run(scenario())

    assert seen == [(".", "."), ("..", "..")]
    assert [sql.split()[0] for sql in executed] == ["BEGIN", "COMMIT"] * 2


def test_a_read_may_not_write_however_often_it_tries(fresh_postgres_url: str) -> None:
    async def scenario() -> int:
        async with opened(fresh_postgres_url) as database, connected(fresh_postgres_url) as witness:
            for _ in range(2):
                with pytest.raises(RuntimeError, match="tried to write"):
                    await database.read(lambda ex: ex.fetch("put", id="a", body=""), kind=KIND)
            return int(await witness.fetchval("SELECT count(*) FROM notes"))

    assert asyncio.run(scenario()) == 0


def test_only_plain_questions_count_as_looks() -> None:
    assert {name for name, statement in STATEMENTS.items() if statement.only_looks} == {
        "get",
        "backend",
        "count",
        "misspelt",
        "fail_with",
        "sleep",
    }
