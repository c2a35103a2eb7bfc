"""A put in the caller's own Postgres transaction: committed with it, gone with it."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import asyncpg
import psycopg
import pytest

from duly import Duly, InvalidInput, Settings
from duly.domain.ids import JobId, JobKey, Lane, PoolName
from duly.domain.instants import Micros
from duly.domain.jobs import JobState, NewJob, PutOutcome, UnknownJob
from duly.domain.pools import PoolDraining, UnknownPool
from duly.domain.templates import NewTemplate
from tests import postgres_server

TABLE = "CREATE TABLE orders (id int)"


pytestmark = pytest.mark.store("postgres")


@pytest.fixture
def store() -> str:
    return "postgres"


@pytest.fixture
def other_database(postgres_server_url: str) -> Iterator[str]:
    with postgres_server.fresh_database(postgres_server_url) as url:
        yield url


def _declare(app: Duly) -> list[int]:
    done: list[int] = []

    @app.job
    async def ship(order: int) -> None:
        done.append(order)

    return done


async def _is_there(app: Duly, job_id: JobId) -> bool:
    try:
        await app.queue.jobs.get(job_id)
    except UnknownJob:
        return False
    return True


async def test_with_asyncpg_both_are_committed_or_neither_is(app: Duly, database_url: str) -> None:
    done = _declare(app)
    connection = await asyncpg.connect(database_url)
    async with app.running(timekeeper=False):
        await connection.execute(TABLE)
        undone = connection.transaction()
        await undone.start()
        await connection.execute("INSERT INTO orders VALUES (1)")
        gone = await app.put("ship", {"order": 1}, connection=connection)
        await undone.rollback()
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES (2)")
            put = await app.put("ship", {"order": 2}, connection=connection)
            assert not await _is_there(app, put.job_id), "nobody sees it yet"
        await app.result(put, timeout=60)
        assert not await _is_there(app, gone.job_id)
        assert done == [2]
        assert [row[0] for row in await connection.fetch("SELECT id FROM orders")] == [2]
    await connection.close()


async def test_the_example_of_the_page_runs(app: Duly, database_url: str) -> None:
    done = _declare(app)
    page = (Path(__file__).parents[2] / "docs" / "queue.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(f"async def example(app, connection):\n{indent(example, '    ')}", names)  # noqa: S102 - our own page
    connection = await asyncpg.connect(database_url)
    async with app.running(timekeeper=False):
        await connection.execute(TABLE)
        await names["example"](app, connection)
        while not done:  # noqa: ASYNC110 - the handler says so
            await asyncio.sleep(0.01)
        assert await connection.fetchval("SELECT id FROM orders") == done[0] == 99
    await connection.close()


async def test_workers_are_woken_by_the_commit(app: Duly, database_url: str) -> None:
    _declare(app)
    connection = await asyncpg.connect(database_url)
    async with app:
        listener = app.queue.storage.wakeups.listen()
        async with connection.transaction():
            await app.put("ship", {"order": 1}, connection=connection)
            heard: set[str] = set()
        while "pool:default" not in heard:
            heard |= await listener.wait(Micros(60_000_000))
        listener.close()
    await connection.close()


@pytest.mark.parametrize("autocommit", [False, True])
async def test_with_psycopg_async_both_are_committed_or_neither_is(
    app: Duly, database_url: str, autocommit: bool
) -> None:
    _declare(app)
    connection = await psycopg.AsyncConnection.connect(database_url, autocommit=autocommit)
    async with app, connection:
        await connection.execute(TABLE)
        await connection.commit()
        async with connection.transaction(force_rollback=True):
            await connection.execute("INSERT INTO orders VALUES (1)")
            gone = await app.put("ship", {"order": 1}, connection=connection)
        async with connection.transaction():
            put = await app.put("ship", {"order": 2}, key="k", lane="l", connection=connection)
            many = await app.put_many("ship", [{"order": 3}, {"order": 4}], lane="l", connection=connection)
            left = await app.put("ship", {"order": 5}, key="k", lane="l", connection=connection)
        await connection.commit()
        assert not await _is_there(app, gone.job_id)
        assert (left.job_id, left.outcome) == (put.job_id, PutOutcome.REPLACED)
        jobs = await app.queue.jobs.list(owner=None)
        assert {job.id: job.state for job in jobs} == {
            many[0].job_id: JobState.READY,
            many[1].job_id: JobState.WAITING,
            put.job_id: JobState.WAITING,  # replaced, it comes last
        }


async def test_a_lane_whose_head_ends_meanwhile_goes_on_with_the_job(app: Duly, database_url: str) -> None:
    go_on = asyncio.Event()

    @app.job(lane="l")
    async def head() -> None:
        await go_on.wait()

    done = _declare(app)
    connection = await asyncpg.connect(database_url)
    async with app.running(timekeeper=False):
        first = await app.put("head")
        while (await app.queue.jobs.get(first.job_id)).started_at is None:  # noqa: ASYNC110 - it is in the store
            await asyncio.sleep(0.01)
        async with connection.transaction():
            second = await app.put("ship", {"order": 1}, lane="l", connection=connection)
            go_on.set()  # its report waits for this transaction
        await app.result(second, timeout=60)
        assert done == [1]
    await connection.close()


def test_with_psycopg_and_no_event_loop_both_are_committed_or_neither_is(app: Duly, database_url: str) -> None:
    _declare(app)
    with app.sync as sync, psycopg.connect(database_url) as connection:
        gone = sync.put("ship", {"order": 1}, connection=connection)
        connection.rollback()
        put = sync.put("ship", {"order": 2}, connection=connection)
        connection.commit()
        rows = connection.execute("SELECT id FROM jobs").fetchall()
        assert rows == [(put.job_id,)]
        assert gone.job_id != put.job_id


async def test_outside_of_a_transaction_it_is_one_of_its_own(app: Duly, database_url: str) -> None:
    _declare(app)
    connection = await asyncpg.connect(database_url)
    alone = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
    async with app, alone:
        for each in (connection, alone):
            put = await app.put("ship", {"order": 1}, connection=each)
            assert await _is_there(app, put.job_id)
    await connection.close()


async def test_templates_keys_and_lanes_mean_what_they_mean_elsewhere(app: Duly, database_url: str) -> None:
    _declare(app)
    connection = await asyncpg.connect(database_url)
    async with app:
        await app.queue.templates.create(NewTemplate(name="t", kind="ship", params={"order": 7}), owner="ann")
        first = await app.queue.jobs.put_from("t", {"order": 1}, owner="ann", key=JobKey("k"), lane=Lane("l"))
        async with connection.transaction():
            jobs = app.queue.within(connection)
            second = await jobs.put_from("t", owner="ann", key=JobKey("k"))
        assert (second.job_id, second.outcome) == (first.job_id, PutOutcome.REPLACED)
        assert (await app.queue.jobs.find(second.job_id, owner="ann")).payload == '{"order":7}'
    await connection.close()


async def test_a_put_that_is_refused_leaves_the_callers_transaction_as_it_was(app: Duly, database_url: str) -> None:
    _declare(app)
    connection = await asyncpg.connect(database_url)
    async with app:
        await connection.execute(TABLE)
        await app.queue.pools.drain(PoolName("ollama"))
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES (1)")
            with pytest.raises(PoolDraining):
                await app.put("ship", {"order": 1}, pool="ollama", connection=connection)
            half = [NewJob(kind="ship"), NewJob(kind="ship", pool=PoolName("nowhere"))]
            with pytest.raises(UnknownPool):
                await app.queue.within(connection).put_many(half)
        assert await connection.fetchval("SELECT count(*) FROM orders") == 1
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 0
    await connection.close()


async def test_what_is_no_connection_to_this_database_is_refused(
    app: Duly, database_url: str, other_database: str, tmp_path: Path
) -> None:
    _declare(app)
    connection = await asyncpg.connect(database_url)
    async with app:

        async def refused(given: Any, why: str) -> None:
            with pytest.raises(InvalidInput, match=why):
                await app.put("ship", {"order": 1}, connection=given)

        await refused(object(), "is a object")
        other = await asyncpg.connect(other_database)
        await refused(other, "another database")
        await other.close()
        await refused(other, "is closed")
        await connection.execute("CREATE SCHEMA theirs CREATE TABLE jobs (id int)")
        await connection.execute("SET search_path TO theirs, public")
        await refused(connection, "another table")
        await connection.execute("SET search_path TO public")
        async with await psycopg.AsyncConnection.connect(database_url) as failed:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await failed.execute("SELECT 1/0")
            await refused(failed, "its transaction has failed")
            await failed.rollback()
        assert await connection.fetchval("SELECT count(*) FROM public.jobs") == 0
    await connection.close()
    async with Duly(settings=Settings(database_url=str(tmp_path / "duly.db"))) as on_sqlite:
        _declare(on_sqlite)
        with pytest.raises(InvalidInput, match="the database is SQLite"):
            await on_sqlite.put("ship", {"order": 1}, connection=connection)
