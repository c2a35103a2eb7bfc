"""Work is run again for reasons that pass, and only for those."""

import asyncio

import pytest

from duly.domain.errors import Unavailable
from duly.storage.postgres.database import PostgresDatabase
from duly.storage.postgres.executor import PostgresExecutor
from tests.adapters.postgres.notes import connected, limits, opened, put


async def _quick_to_see_deadlocks(url: str) -> None:
    async with connected(url) as witness:
        name = await witness.fetchval("SELECT current_database()")
        await witness.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '20ms'")


def test_two_transactions_in_a_deadlock_both_commit(fresh_postgres_url: str) -> None:
    runs: list[bool] = []

    async def both(database: PostgresDatabase, met: asyncio.Barrier, first: str, second: str) -> None:
        meet = True

        async def work(executor: PostgresExecutor) -> None:
            nonlocal meet
            runs.append(executor.rerun)
            await executor.fetch("touch", id=first)
            if meet:
                meet = False
                await met.wait()
            await executor.fetch("touch", id=second)

        await database.transact(work)

    async def scenario() -> None:
        await _quick_to_see_deadlocks(fresh_postgres_url)
        async with opened(fresh_postgres_url) as database:
            await put(database, "a")
            await put(database, "b")
            met = asyncio.Barrier(2)
            await asyncio.gather(both(database, met, "a", "b"), both(database, met, "b", "a"))
            assert await database.read(lambda ex: ex.fetch("get", id="a")) == [("a", "..")]
            assert await database.read(lambda ex: ex.fetch("get", id="b")) == [("b", "..")]

    asyncio.run(scenario())
    assert len(runs) >= 3, "no deadlock happened"
    assert not any(runs), "the server said that it rolled back, so nothing was unknown"


def test_a_serialization_failure_is_run_again(fresh_postgres_url: str) -> None:
    runs = 0

    async def count_then_put(database: PostgresDatabase, met: asyncio.Barrier, note: str) -> None:
        meet = True

        async def work(executor: PostgresExecutor) -> None:
            nonlocal meet, runs
            runs += 1
            await executor.fetch("serializable")
            [(count,)] = await executor.fetch("count")
            if meet:
                meet = False
                await met.wait()
            await executor.fetch("put", id=note, body=str(count))

        await database.transact(work)

    async def scenario() -> list[str]:
        async with opened(fresh_postgres_url) as database, connected(fresh_postgres_url) as witness:
            met = asyncio.Barrier(2)
            await asyncio.gather(count_then_put(database, met, "a"), count_then_put(database, met, "b"))
            rows = await witness.fetch("SELECT body FROM notes ORDER BY body")
            return [body for (body,) in rows]

    assert asyncio.run(scenario()) == ["0", "1"]
    assert runs >= 3, "no serialization failure happened"


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03", "25006"])
def test_a_failure_that_does_not_pass_ends_in_unavailable_within_the_bound(fresh_postgres_url: str, state: str) -> None:
    runs = 0

    async def work(executor: PostgresExecutor) -> None:
        nonlocal runs
        runs += 1
        assert not executor.rerun
        await executor.fetch("fail_with", state=state)

    async def scenario() -> None:
        async with opened(fresh_postgres_url, limits=limits(patience=0.1)) as database:
            async with asyncio.timeout(2):
                with pytest.raises(Unavailable, match="as asked"):
                    await database.transact(work)
            await put(database, "still usable")

    asyncio.run(scenario())
    assert 2 <= runs <= 10


def test_wake_topics_of_a_failed_run_are_not_announced(fresh_postgres_url: str) -> None:
    runs = 0

    async def work(executor: PostgresExecutor) -> None:
        nonlocal runs
        runs += 1
        executor.wake(f"run {runs}")
        if runs == 1:
            await executor.fetch("fail_with", state="40001")
        await executor.fetch("put", id="a", body="")

    async def scenario() -> frozenset[str]:
        async with opened(fresh_postgres_url) as database:
            listener = database.wakeups.listen()
            await database.transact(work)
            return await listener.wait(at_most=limits().connect)

    assert asyncio.run(scenario()) == {"run 2"}
