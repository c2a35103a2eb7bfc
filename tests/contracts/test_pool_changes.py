"""A pool or a chain that changes under a call which stands still in the middle: both must see one order of events."""

import asyncio

import pytest

from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.domain.jobs import PutOutcome
from duly.domain.pools import Pool, PoolInUse
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import Wanted
from tests.contracts.points import met, stop_after, stop_before
from tests.contracts.world import WIDE, World, new

pytestmark = pytest.mark.store("postgres")

NARROW = PoolName("narrow")


async def test_a_pool_is_not_removed_under_a_put_that_is_acknowledged(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    await world.pool(NARROW, 1)

    with stop_after("insert_job") as point:
        putting = asyncio.create_task(world.queue.jobs.put_many([new(pool=NARROW)]))
        await point.reached.wait()
        removing = asyncio.create_task(other.pools.remove(NARROW))
        await met(removing)
        point.go.set()
        (put,) = await putting
        with pytest.raises(PoolInUse):
            await removing

    assert put.outcome is PutOutcome.CREATED
    assert await world.kinds(NARROW) == ["work"]


async def test_a_crowd_that_is_put_keeps_its_pool_too(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    await world.pool(NARROW, 1)
    with stop_after("insert_alike") as point:
        putting = asyncio.create_task(world.queue.jobs.put_alike(new(pool=NARROW), [{}] * 200))
        await point.reached.wait()
        removing = asyncio.create_task(other.pools.remove(NARROW))
        await met(removing)
        point.go.set()
        await putting
        with pytest.raises(PoolInUse):
            await removing

    assert len(await world.kinds(NARROW)) == 200


async def test_a_resource_is_not_removed_under_a_put_that_names_it(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    await world.pool(NARROW, 1)

    with stop_before("insert_job") as point:
        putting = asyncio.create_task(world.queue.jobs.put(new(resources=[NARROW])))
        await point.reached.wait()
        removing = asyncio.create_task(other.pools.remove(NARROW))
        await met(removing)
        point.go.set()
        put = await putting
        with pytest.raises(PoolInUse):
            await removing

    hand = await world.hand()
    assert [job.id for job in await hand.claim()] == [put.job_id]


async def test_a_pool_whose_ageing_changes_under_a_put_reranks_that_job_too(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    await world.pool(NARROW, 10, ageing_ms=1_000)

    with stop_after("insert_job") as point:
        putting = asyncio.create_task(world.queue.jobs.put_many([new("better", pool=NARROW)]))
        await point.reached.wait()
        saving = asyncio.create_task(other.pools.define(Pool(name=NARROW, slots=10)))
        await met(saving)
        point.go.set()
        await asyncio.gather(putting, saving)

    await world.put("worse", pool=NARROW, priority=-5)
    assert await world.kinds(NARROW) == ["better", "worse"]


async def test_a_run_that_is_cancelled_while_it_fails_is_not_tried_again_as_well(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    job_id = await world.put(retry=RetryPolicy(max_attempts=3))
    hand = await world.hand()
    (job,) = await hand.claim()

    with stop_before("finish") as point:
        failing = asyncio.create_task(hand.fail(job))
        await point.reached.wait()
        cancelling = asyncio.create_task(other.jobs.cancel(job_id, reason="stop it"))
        await met(cancelling)
        point.go.set()
        await asyncio.gather(failing, cancelling, return_exceptions=True)

    was_cancelled = await world.state(job_id) == "CANCELLED"
    was_retried = len(await world.queue.jobs.chain(job_id)) > 1
    assert was_cancelled is not was_retried


async def test_a_claim_does_not_wait_for_a_beat_of_its_session(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    await world.pool(NARROW, 1)
    hand = await world.hand()
    await world.put(resources=[NARROW])
    await world.put(resources=[NARROW])
    (running,) = await hand.claim(2)
    await world.put("free")
    # Room that nobody was told of, as after a claimer that died.
    await world.rows("UPDATE pools SET slots = 5 WHERE name = 'narrow'")

    with stop_before("renew_session") as point:
        beating = asyncio.create_task(other.sessions.beat(hand.session))
        await point.reached.wait()
        async with asyncio.timeout(20):
            exchange = await hand.exchange(wanted={WIDE: Wanted(2)})
        point.go.set()
        await beating

    assert len(exchange.started) == 2
    assert running.id not in {job.id for job in exchange.started}


async def test_a_ticket_and_a_claim_of_one_session_do_not_deadlock(postgres_world: World) -> None:
    world = postgres_world
    other = await world.another()
    hand = await world.hand()
    job_id = await world.put()

    with stop_after("lock_pool") as point:
        asking = asyncio.create_task(other.tickets.request(WIDE, session=hand.session, wait=Micros(1_000)))
        await point.reached.wait()
        claiming = asyncio.create_task(hand.claim())
        await met(claiming)
        point.go.set()
        _, claimed = await asyncio.gather(asking, claiming)

    assert [job.id for job in claimed] == [job_id]
    assert (point.ran["hold_session"], point.ran["claim_in_one_pool"]) == (1, 1), "the victim of a deadlock ran again"
