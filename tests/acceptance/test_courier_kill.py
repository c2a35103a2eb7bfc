"""A courier that is killed in the middle of a delivery: another makes it again, under the same id."""

import asyncio
import sys
from pathlib import Path

import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.ids import Token
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import COMPLETED, NewJob
from duly.domain.pools import DEFAULT_POOL
from duly.domain.sessions import LEASE, Report, Wanted
from duly.domain.webhooks.deliveries import DeliveryPace, DeliveryState
from tests.receiver import answers, never_answers, receiving

# A short lease, so that nobody waits for a minute to see it end; a call may take longer, so that one can be cut.
PACE = DeliveryPace(lease=Micros(4 * SECOND), first_byte_within_s=30.0, all_within_s=30.0)
COURIER = """
import asyncio, sys
from tests.acceptance.test_courier_kill import PACE, opened
async def main():
    queue = await opened(sys.argv[1])
    await queue.courier(PACE).run()
asyncio.run(main())
"""


async def opened(place: str) -> Queue:
    return await Queue.open(Settings(database_url=place, webhook_loopback="allowed"))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "duly.db") if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))


@pytest.mark.req("DEC-009")
def test_a_delivery_that_was_under_way_when_its_courier_was_killed_is_made_again_under_its_id(place: str) -> None:
    asyncio.run(asyncio.wait_for(_scenario(place), 120))


async def _scenario(place: str) -> None:
    queue = await opened(place)
    async with receiving(never_answers, answers(200)) as receiver:
        await queue.webhooks.create(receiver.url, owner="ann", everything=True)
        jobs = [await _end_a_job(queue) for _ in range(2)]
        root = Path(__file__).parents[2]
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", COURIER, place, cwd=root)
        try:
            await receiver.has_received.wait()
        finally:
            child.kill()
            await child.wait()
        hanging = receiver.received[0].webhook_id
        courier = queue.courier(PACE)
        running = asyncio.create_task(courier.run())
        try:
            while await _delivered(queue) < len(jobs):  # noqa: ASYNC110 - a fact of the database
                await asyncio.sleep(0.05)
        finally:
            courier.stop()
            await running

        told = {each.told["data"]["id"]: each.webhook_id for each in receiver.received}
        assert sorted(told) == sorted(jobs)
        assert len(set(receiver.ids)) == 2, "two events, two ids, however often each was sent"
        assert receiver.ids.count(hanging) == 2
    await queue.close()


async def _delivered(queue: Queue) -> int:
    return len(await queue.webhooks.deliveries(owner=None, state=DeliveryState.DELIVERED))


async def _end_a_job(queue: Queue) -> str:
    put = await queue.jobs.put(NewJob(kind="work"))
    session = await queue.sessions.open(name="hand", capacity=9, lease=LEASE)
    wanted = {DEFAULT_POOL: Wanted(1)}
    claimed = await queue.sessions.exchange(
        session.id, token=Token(1), reports=(), starting=(), wanted=wanted, again=False
    )
    reports = [Report(job, COMPLETED) for job in claimed.started]
    await queue.sessions.exchange(session.id, token=Token(2), reports=reports, starting=(), wanted={}, again=False)
    return put.job_id
