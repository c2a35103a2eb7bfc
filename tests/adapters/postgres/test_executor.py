"""What a statement means on Postgres, and what its failures are called."""

import asyncio

import asyncpg
import pytest

from duly.domain.errors import InvalidInput, Unavailable
from duly.storage.errors import ConstraintViolated
from duly.storage.postgres.executor import PostgresExecutor
from tests.adapters.postgres.notes import connected, opened, put


def test_each_sends_one_array_per_column_and_the_constants_once(fresh_postgres_url: str) -> None:
    async def scenario() -> list[tuple[str, str]]:
        async with opened(fresh_postgres_url) as database:
            rows = [("x", "1"), ("y", "2")]
            found = await database.transact(lambda ex: ex.each("put_all", rows, suffix="!"))
            return [(note, body) for note, body in found]

    assert sorted(asyncio.run(scenario())) == [("1", "x!"), ("2", "y!")]


def test_rows_compare_as_tuples_do(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            await put(database, "a", "x")
            assert await database.read(lambda ex: ex.fetch("get", id="a")) == [("a", "x")]

    asyncio.run(scenario())


def test_each_of_no_rows_asks_the_server_nothing(fresh_postgres_url: str) -> None:
    async def work(executor: PostgresExecutor) -> int:
        assert await executor.each("put_all", [], suffix="") == []
        return executor.ran

    async def scenario() -> int:
        async with opened(fresh_postgres_url) as database:
            return await database.transact(work)

    assert asyncio.run(scenario()) == 0


def test_a_row_of_the_wrong_width_is_refused(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            with pytest.raises(ValueError, match=r"zip\(\)"):
                await database.transact(lambda ex: ex.each("put_all", [("x", "1", "extra")], suffix=""))

    asyncio.run(scenario())


@pytest.mark.parametrize("pooled", [False, True])
def test_single_work_may_not_run_a_second_statement(fresh_postgres_url: str, pooled: bool) -> None:
    async def twice(executor: PostgresExecutor) -> None:
        await executor.fetch("count")
        await executor.fetch("count")

    async def scenario() -> None:
        async with opened(fresh_postgres_url, pooled=pooled) as database:
            await put(database, "a", single=True)
            with pytest.raises(RuntimeError, match="count is the second statement"):
                await database.transact(twice, single=True)
            assert await database.read(lambda ex: ex.fetch("count")) == [(1,)]

    asyncio.run(scenario())


@pytest.mark.parametrize("pooled", [False, True])
def test_work_that_raises_writes_nothing(fresh_postgres_url: str, pooled: bool) -> None:
    async def work(executor: PostgresExecutor) -> None:
        await executor.fetch("put", id="a", body="")
        raise KeyError("mine")

    async def scenario() -> None:
        async with (
            opened(fresh_postgres_url, pooled=pooled) as database,
            connected(fresh_postgres_url) as witness,
        ):
            with pytest.raises(KeyError, match="mine"):
                await database.transact(work)
            assert await witness.fetchval("SELECT count(*) FROM notes") == 0

    asyncio.run(scenario())


def test_a_read_sees_one_snapshot_and_may_not_write(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:

            async def look_twice(executor: PostgresExecutor) -> tuple[int, int]:
                [(before,)] = await executor.fetch("count")
                await put(database, "meanwhile")
                [(after,)] = await executor.fetch("count")
                return before, after

            assert await database.read(look_twice) == (0, 0)
            with pytest.raises(RuntimeError, match="tried to write"):
                await database.read(lambda ex: ex.fetch("put", id="b", body=""))

    asyncio.run(scenario())


@pytest.mark.parametrize("single", [False, True])
def test_a_broken_rule_of_the_schema_is_named(fresh_postgres_url: str, single: bool) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            await put(database, "a")
            with pytest.raises(ConstraintViolated) as unique:
                await put(database, "a", single=single)
            with pytest.raises(ConstraintViolated) as check:
                await put(database, "b", "x" * 100, single=single)
            with pytest.raises(ConstraintViolated) as null:
                await database.transact(lambda ex: ex.fetch("put", id=None, body=""), single=single)
            assert (unique.value.kind, unique.value.name) == ("unique", "notes_id")
            assert (check.value.kind, check.value.name) == ("check", "notes_body_is_short")
            assert (null.value.kind, null.value.name) == ("not_null", "id")

    asyncio.run(scenario())


def test_a_swallowed_failure_cannot_pass_for_a_commit(fresh_postgres_url: str) -> None:
    """Postgres answers the COMMIT of a failed transaction with a quiet ROLLBACK."""

    async def work(executor: PostgresExecutor) -> str:
        await executor.fetch("put", id="new", body="")
        try:
            await executor.fetch("put", id="new", body="")
        except ConstraintViolated:
            return "fine"
        return "finer"

    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            with pytest.raises(ConstraintViolated):
                await database.transact(work)
            assert await database.read(lambda ex: ex.fetch("count")) == [(0,)]

    asyncio.run(scenario())


@pytest.mark.parametrize(("text", "fix"), [("a\x00b", "NUL"), ("a\ud800b", "surrogates")])
def test_text_that_postgres_cannot_store_is_invalid_input(fresh_postgres_url: str, text: str, fix: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            with pytest.raises(InvalidInput, match=fix):
                await put(database, "a", text)
            await put(database, "a", "plain")

    asyncio.run(scenario())


def test_a_misspelt_column_is_a_bug_and_not_tried_again(fresh_postgres_url: str) -> None:
    runs = 0

    async def work(executor: PostgresExecutor) -> None:
        nonlocal runs
        runs += 1
        await executor.fetch("misspelt")

    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            with pytest.raises(asyncpg.UndefinedColumnError):
                await database.transact(work)

    asyncio.run(scenario())
    assert runs == 1


@pytest.mark.parametrize("state", ["53100", "53200", "57014", "58030"])
def test_a_full_disk_is_unavailable_and_not_tried_again(fresh_postgres_url: str, state: str) -> None:
    runs = 0

    async def work(executor: PostgresExecutor) -> None:
        nonlocal runs
        runs += 1
        await executor.fetch("fail_with", state=state)

    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            with pytest.raises(Unavailable, match="cannot do this now: as asked"):
                await database.transact(work)

    asyncio.run(scenario())
    assert runs == 1


def test_a_statement_survives_a_migration_of_its_table(fresh_postgres_url: str) -> None:
    """The server refuses a prepared plan whose columns changed type; a new connection prepares anew."""

    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database, connected(fresh_postgres_url) as witness:
            await put(database, "a", "x")
            await database.read(lambda ex: ex.fetch("get", id="a"))
            await witness.execute("ALTER TABLE notes ALTER body TYPE varchar(200)")
            assert await database.read(lambda ex: ex.fetch("get", id="a")) == [("a", "x")]

    asyncio.run(scenario())
