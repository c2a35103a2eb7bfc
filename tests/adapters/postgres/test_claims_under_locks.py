"""A claim that holds its pools waits for nobody, so nobody can wait for it in a circle."""

import asyncio

import asyncpg
import pytest

from duly.bootstrap import Queue
from duly.domain.ids import PoolName, Token
from duly.domain.jobs import NewJob
from duly.domain.pools import Pool
from duly.domain.sessions import Wanted
from duly.settings import Settings
from tests.adapters.postgres.notes import connected

WIDE = PoolName("wide")


@pytest.mark.req("INV-003")
def test_a_claim_passes_over_a_job_that_another_worker_is_just_ending(fresh_postgres_url: str) -> None:
    """It began before that job was claimed, and takes it for ready; the other holds the job and wants the pool."""

    async def claim_meanwhile() -> tuple[list[str], list[str]]:
        async with connected(fresh_postgres_url) as ending, connected(fresh_postgres_url) as holding:
            queue = await Queue.open(Settings(database_url=fresh_postgres_url))
            try:
                await queue.pools.define(Pool(name=WIDE, slots=10))
                first, second = await queue.jobs.put_many([NewJob(kind="work", pool=WIDE) for _ in range(2)])
                session = await queue.sessions.open(name="worker")
                await holding.execute("BEGIN; SELECT FROM pools FOR UPDATE")
                exchange = queue.sessions.exchange(session.id, token=Token(1), wanted={WIDE: Wanted(1)})
                claiming = asyncio.create_task(exchange)
                await _waits_for_a_lock(holding)
                await _claim_and_begin_to_end(ending, first.job_id)
                await holding.execute("COMMIT")
                async with asyncio.timeout(5):
                    started = (await claiming).started
                await ending.execute("ROLLBACK")
                return [job.id for job in started], [second.job_id]
            finally:
                await queue.close()

    started, expected = asyncio.run(claim_meanwhile())

    assert started == expected


async def _waits_for_a_lock(connection: asyncpg.Connection) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(10):
        while not await connection.fetchval(waiting):  # noqa: ASYNC110 - no event tells of another's wait
            await asyncio.sleep(0.01)


async def _claim_and_begin_to_end(connection: asyncpg.Connection, job: str) -> None:
    await connection.execute("UPDATE jobs SET state = 'running', session = 'other', token = 1 WHERE id = $1", job)
    await connection.execute("BEGIN")
    await connection.execute("DELETE FROM jobs WHERE id = $1", job)
