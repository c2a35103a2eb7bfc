"""A claim is one statement that commits by itself: when its answer is lost, what it claimed is not."""

import asyncio

import pytest

from duly.bootstrap import Queue
from duly.domain.ids import PoolName, Token
from duly.domain.jobs import NewJob
from duly.domain.pools import Pool
from duly.domain.sessions import Wanted
from duly.settings import Settings
from tests.tcp_proxy import TcpProxy

WIDE = PoolName("wide")


@pytest.mark.req("INV-003")
def test_a_claim_whose_answer_was_lost_is_found_again_and_not_repeated(fresh_postgres_url: str) -> None:
    async def claim_twice() -> tuple[set[str], set[str], int]:
        async with TcpProxy(fresh_postgres_url) as proxy:
            queue = await Queue.open(Settings(database_url=proxy.url))
            try:
                await queue.pools.define(Pool(name=WIDE, slots=100))
                session = await queue.sessions.open(name="worker", capacity=4)
                await queue.sessions.exchange(session.id, token=Token(1), wanted={WIDE: Wanted(1)})
                put = await queue.jobs.put_many([NewJob(kind="work", pool=WIDE) for _ in range(10)])
                proxy.cut_once("after", session.id.encode())
                exchange = await queue.sessions.exchange(session.id, token=Token(2), wanted={WIDE: Wanted(3)})
                used = (await queue.pools.get(WIDE)).used
                assert proxy.cuts == 1
                return {job.id for job in exchange.started}, {done.job_id for done in put[:3]}, used
            finally:
                await queue.close()

    started, first, used = asyncio.run(claim_twice())

    assert started == first, "the jobs that were claimed are those that run"
    assert used == len(first)
