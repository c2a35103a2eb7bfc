"""The pool: few connections, lent one at a time, never waited for without end."""

import asyncio
import threading
from typing import Any

import pytest

from duly.domain.errors import Unavailable
from duly.storage.postgres.executor import PostgresExecutor
from tests.adapters.postgres.notes import connected, limits, opened, put

_BACKENDS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'duly' AND datname = current_database()"


def test_when_all_connections_are_busy_the_caller_hears_it_in_time(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url, limits=limits(connections=2, acquire=0.1)) as database:
            entered = asyncio.Barrier(3)
            leave = asyncio.Event()

            async def occupy(executor: PostgresExecutor) -> None:
                await entered.wait()
                await leave.wait()

            occupants = [asyncio.create_task(database.transact(occupy)) for _ in range(2)]
            await entered.wait()
            async with asyncio.timeout(10):
                with pytest.raises(Unavailable, match=r"all 2 connections busy for 0\.1 s"):
                    await put(database, "a")
            leave.set()
            await asyncio.gather(*occupants)
            await put(database, "a")

    asyncio.run(scenario())


def test_a_lone_caller_keeps_to_one_connection(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with (
            opened(fresh_postgres_url, listening=False) as database,
            connected(fresh_postgres_url) as witness,
        ):
            for n in range(20):
                await put(database, f"{n}", single=n % 2 == 0)
            assert await witness.fetchval(_BACKENDS) == 1

    asyncio.run(scenario())


def test_callers_beyond_the_pool_take_turns(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with (
            opened(fresh_postgres_url, limits=limits(connections=3), listening=False) as database,
            connected(fresh_postgres_url) as witness,
        ):
            await asyncio.gather(*(put(database, f"{n}") for n in range(60)))
            assert await witness.fetchval("SELECT count(*) FROM notes") == 60
            assert await witness.fetchval(_BACKENDS) == 3

    asyncio.run(scenario())


def test_connections_carry_their_limits(fresh_postgres_url: str) -> None:
    async def scenario() -> dict[str, str]:
        async with (
            opened(fresh_postgres_url, limits=limits(statement=7, lock=3, idle_in_transaction=9)) as database,
        ):
            connection = await database._connections.acquire()
            names = [
                "statement_timeout",
                "lock_timeout",
                "idle_in_transaction_session_timeout",
                "jit",
                "enable_seqscan",
                "plan_cache_mode",
                "TimeZone",
            ]
            shown = {name: await connection.raw.fetchval(f"SHOW {name}") for name in names}
            database._connections.release(connection)
            return shown

    assert asyncio.run(scenario()) == {
        "statement_timeout": "7s",
        "lock_timeout": "3s",
        "idle_in_transaction_session_timeout": "9s",
        "jit": "off",
        "enable_seqscan": "off",
        "plan_cache_mode": "force_generic_plan",
        "TimeZone": "UTC",
    }


def test_through_a_pooler_the_limits_go_with_each_transaction(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        slow = limits(statement=0.1)
        async with opened(fresh_postgres_url, limits=slow, pooled=True) as database:
            for single in (False, True):
                with pytest.raises(Unavailable, match="statement timeout"):
                    await database.transact(lambda ex: ex.fetch("sleep", seconds=5), single=single)

    asyncio.run(scenario())


def test_close_lets_the_last_transaction_finish_and_takes_no_more(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with connected(fresh_postgres_url) as witness, opened(fresh_postgres_url) as database:
            entered, leave = asyncio.Event(), asyncio.Event()

            async def work(executor: PostgresExecutor) -> None:
                entered.set()
                await leave.wait()
                await executor.fetch("put", id="last", body="")

            last = asyncio.create_task(database.transact(work))
            await entered.wait()
            closing = asyncio.create_task(database.close())
            await asyncio.sleep(0)
            with pytest.raises(Unavailable, match="closed"):
                await put(database, "too late")
            leave.set()
            await asyncio.gather(last, closing)
            assert await witness.fetchval("SELECT id FROM notes") == "last"

    asyncio.run(scenario())


def test_a_store_of_another_loop_says_so(fresh_postgres_url: str) -> None:
    heard: list[Any] = []

    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:

            def elsewhere() -> None:
                try:
                    asyncio.run(put(database, "a"))
                except RuntimeError as error:
                    heard.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            await asyncio.to_thread(thread.join)

    asyncio.run(scenario())
    assert "another event loop" in str(heard[0])
