"""A lone put tells of itself as it commits, if that holds nobody up; all others are told of afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from duly.bootstrap import Queue
from duly.domain.ids import Lane, PoolName, Token
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import NewJob
from duly.domain.pools import Pool
from duly.domain.sessions import Wanted
from duly.settings import Settings
from duly.storage.postgres.wakeups import PostgresWakeups, unpacked
from tests.adapters.postgres.notes import connected, until
from tests.adapters.postgres.test_clock import HandTicks

LONG = Micros(10 * SECOND)
NOT_AT_ALL = Micros(0)
JOB = NewJob(kind="work")


@asynccontextmanager
async def queue_on(url: str) -> AsyncIterator[Queue]:
    queue = await Queue.open(Settings(database_url=url))
    try:
        yield queue
    finally:
        await queue.close()


class Witness:
    """What the server was told, in order, and whether a commit carried it: such hints bear their sender's number."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.heard: list[tuple[bool, set[str]]] = []

    async def listen(self) -> None:
        await self._connection.add_listener("duly", self._hear)

    def _hear(self, _connection: asyncpg.Connection, _sender: int, _channel: str, payload: str) -> None:
        topics = unpacked(payload)
        named = {topic for topic in topics if not topic.startswith("from:")}
        self.heard.append((named != topics, named))

    async def has_heard(self, count: int) -> None:
        async def enough() -> bool:
            return len(self.heard) >= count

        await until(enough)


async def _is_quiet(queue: Queue) -> None:
    """The pause after a hint is over."""
    wakeups = queue.storage.wakeups
    assert isinstance(wakeups, PostgresWakeups)

    async def quiet() -> bool:
        return wakeups._is_quiet

    await until(quiet)


def test_a_lone_put_tells_others_with_its_commit_and_the_putter_once(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with (
            queue_on(fresh_postgres_url) as here,
            queue_on(fresh_postgres_url) as there,
            connected(fresh_postgres_url) as connection,
        ):
            witness = Witness(connection)
            await witness.listen()
            near, far = here.storage.wakeups.listen(), there.storage.wakeups.listen()
            await _is_quiet(here)
            await here.jobs.put(JOB)

            assert await near.wait(NOT_AT_ALL) == {"pool:default"}
            assert await far.wait(LONG) == {"pool:default"}
            await witness.has_heard(1)
            # The server keeps the order: an echo of the put would have come before this.
            there.storage.wakeups.announce(frozenset({"b"}))
            assert await near.wait(LONG) == {"b"}
            await witness.has_heard(2)
            assert witness.heard == [(True, {"pool:default"}), (False, {"b"})]

    asyncio.run(scenario())


def test_a_put_that_follows_at_once_is_told_of_after_its_commit(fresh_postgres_url: str) -> None:
    """However many are put, a hint is carried no more often than one is sent."""

    async def scenario() -> None:
        async with queue_on(fresh_postgres_url) as here, connected(fresh_postgres_url) as connection:
            witness = Witness(connection)
            await witness.listen()
            await _is_quiet(here)
            wakeups = here.storage.wakeups
            assert isinstance(wakeups, PostgresWakeups)
            assert wakeups.carry({"pool:default"}) is not None
            await here.jobs.put(JOB)
            await witness.has_heard(1)

            assert witness.heard == [(False, {"pool:default"})]

    asyncio.run(scenario())


def test_a_hint_whose_commit_was_slow_is_not_carried_again_for_a_while(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        ticks = HandTicks()

        async def connect() -> asyncpg.Connection:
            return await asyncpg.connect(fresh_postgres_url)

        wakeups = PostgresWakeups(connect, ticks=ticks)
        await wakeups.start()
        try:

            async def quiet() -> bool:
                return wakeups._is_quiet

            for took, is_carried_next in ((4_000, True), (6_000, False)):
                await until(quiet)
                assert wakeups.carry({"a"}) is not None
                await until(quiet)  # its pause counts as time that passes, and moves the hands
                ticks.boot = wakeups._carried_at + took
                wakeups.carried(frozenset({"a"}))
                assert (wakeups.carry({"a"}) is not None) is is_carried_next
            ticks.boot += SECOND
            await until(quiet)
            assert wakeups.carry({"a"}) is not None
        finally:
            await wakeups.close()

    asyncio.run(scenario())


@pytest.mark.req("INV-003")
def test_a_carried_put_finds_its_lane_taken_as_any_other_does(fresh_postgres_url: str) -> None:
    async def scenario() -> list[str]:
        async with queue_on(fresh_postgres_url) as queue:
            puts = []
            for _ in range(3):
                await _is_quiet(queue)
                puts.append(await queue.jobs.put(NewJob(kind="work", lane=Lane("one"))))
            return [str(getattr(await queue.jobs.get(put.job_id), "state", "")) for put in puts]

    assert asyncio.run(scenario()) == ["ready", "waiting", "waiting"]


@pytest.mark.parametrize("pools", [("a",), ("a", "b")])
def test_a_claim_takes_what_there_is_room_for_in_the_pools_order(
    fresh_postgres_url: str, pools: tuple[str, ...]
) -> None:
    """The statement for one pool and the one for several mean the same."""

    async def scenario() -> tuple[list[str], list[str], set[int], int]:
        async with queue_on(fresh_postgres_url) as queue, connected(fresh_postgres_url) as witness:
            for name in pools:
                await queue.pools.define(Pool(name=PoolName(name), slots=2))
            wanted = {PoolName(name): Wanted(5) for name in pools}
            expected = []
            for name in pools:
                puts = [await queue.jobs.put(NewJob(kind="work", pool=PoolName(name))) for _ in range(3)]
                expected += [put.job_id for put in puts[:2]]
            session = await queue.sessions.open(name="w", capacity=10)
            first = await queue.sessions.exchange(session.id, token=Token(1), wanted=wanted)
            again = await queue.sessions.exchange(session.id, token=Token(2), wanted=wanted)
            assert not again.started
            used = {row["used"] for row in await witness.fetch("SELECT used FROM pools WHERE name = ANY($1)", pools)}
            busy = await witness.fetchval("SELECT busy FROM sessions")
            return sorted(job.id for job in first.started), sorted(expected), used, busy

    started, expected, used, busy = asyncio.run(scenario())

    assert started == expected
    assert used == {2}
    assert busy == 2 * len(pools)


def test_a_claim_that_finds_nothing_writes_nothing(fresh_postgres_url: str) -> None:
    async def scenario() -> tuple[str, str]:
        async with queue_on(fresh_postgres_url) as queue, connected(fresh_postgres_url) as witness:
            session = await queue.sessions.open(name="w")
            version = "SELECT xmin::text FROM sessions"
            before = await witness.fetchval(version)
            await queue.sessions.exchange(session.id, token=Token(1), wanted={PoolName("default"): Wanted(1)})
            return before, await witness.fetchval(version)

    before, after = asyncio.run(scenario())

    assert before == after
