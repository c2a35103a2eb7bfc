"""Pools: limits that hold under every race, and what owners do with them."""

import asyncio

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.jobs import COMPLETED
from duly.domain.pools import BUILT_IN_POOLS, Pool, PoolInUse, PoolMode, UnknownPool
from duly.domain.sessions import OverCapacity, Report, Wanted
from tests.contracts.world import DEFAULT_POOL, WIDE, Hand, World, new

SMALL = PoolName("small")


@pytest.mark.req("DEC-011")
async def test_the_built_in_pools_have_their_stated_limits(world: World) -> None:
    pools = {pool.name: pool for pool in await world.queue.pools.all()}

    assert {name: pools[name].slots for name in pools if name != WIDE} == {
        "default": 1,
        "graphs": 16,
        "flows": 16,
        "webhooks": 32,
        "ollama": 1,
    }
    assert all(pools[pool.name] == pool for pool in BUILT_IN_POOLS), "the schema and the domain say the same"


async def test_changes_of_a_pool_at_once_all_count(world: World) -> None:
    await world.pool(SMALL, 7)
    other = await world.another()

    await asyncio.gather(
        world.queue.pools.change(SMALL, slots=9),
        other.pools.change(SMALL, prefetch=3),
        world.queue.pools.change(SMALL, mode=PoolMode.PAUSED, ageing_ms=5),
    )

    expected = Pool(name=SMALL, slots=9, prefetch=3, mode=PoolMode.PAUSED, ageing_ms=5)
    assert await world.queue.pools.get(SMALL) == expected
    with pytest.raises(InvalidInput):
        await world.queue.pools.change(SMALL, slots=-1)
    with pytest.raises(UnknownPool):
        await world.queue.pools.change(PoolName("nowhere"), slots=1)


@pytest.mark.req("DEC-011")
async def test_one_user_job_runs_at_a_time_by_default(world: World) -> None:
    for n in range(3):
        await world.put(f"n{n}", pool=DEFAULT_POOL)
    one, two = await world.hand(), await world.hand()

    (first,) = await one.claim(3, DEFAULT_POOL)
    assert await two.claim(3, DEFAULT_POOL) == []
    await one.finish(first)

    assert [job.kind for job in await two.claim(3, DEFAULT_POOL)] == ["n1"]
    assert await world.used(DEFAULT_POOL) == 1


@pytest.mark.req("DEC-011")
async def test_a_limit_is_never_exceeded_however_many_claim_at_once(world: World) -> None:
    await world.pool(SMALL, 7)
    await world.queue.jobs.put_many([new(f"n{n}", pool=SMALL) for n in range(120)])
    queues = [world.queue, await world.another()]
    hands = [await world.hand(10, queue=queues[n % 2]) for n in range(8)]
    running = 0
    most = 0
    ran: list[str] = []

    async def work(hand: Hand) -> None:
        nonlocal running, most
        while len(ran) < 120:
            claimed = await hand.claim(3, SMALL)
            running += len(claimed)
            most = max(most, running)
            await asyncio.sleep(0)
            if claimed:
                running -= len(claimed)
                ran.extend(job.kind for job in claimed)
                await hand.finish(*claimed)

    await asyncio.gather(*(work(hand) for hand in hands))

    assert most <= 7
    assert sorted(ran) == sorted(f"n{n}" for n in range(120))
    assert await world.used(SMALL) == 0


@pytest.mark.req("DEC-011")
async def test_a_limit_lowered_below_what_runs_stops_claims_and_not_runs(world: World) -> None:
    await world.pool(SMALL, 3)
    for n in range(5):
        await world.put(f"n{n}", pool=SMALL)
    hand = await world.hand()
    claimed = await hand.claim(5, SMALL)

    await world.pool(SMALL, 1)

    assert len(claimed) == 3
    assert await world.used(SMALL) == 3
    await hand.finish(*claimed[:2])
    assert await hand.claim(5, SMALL) == []
    await hand.finish(claimed[2])
    assert len(await hand.claim(5, SMALL)) == 1


async def test_a_pool_of_no_slots_runs_nothing(world: World) -> None:
    await world.pool(SMALL, 0)
    await world.put(pool=SMALL)
    hand = await world.hand()

    assert await hand.claim(5, SMALL) == []
    assert await hand.hold(5, SMALL) == []


async def test_a_paused_pool_takes_jobs_and_starts_none(world: World) -> None:
    hand = await world.hand()
    await world.put("before")
    (running,) = await hand.claim()
    await world.queue.pools.pause(WIDE)

    await world.put("after")
    assert await hand.claim(5) == []
    assert await hand.hold(5) == []
    assert (await hand.finish(running)).stale == []

    await world.queue.pools.open(WIDE)
    assert await hand.work_off() == ["after"]


async def test_a_draining_pool_runs_what_it_has(world: World) -> None:
    await world.put("before")
    hand = await world.hand()

    pool = await world.queue.pools.drain(WIDE)

    assert pool.mode is PoolMode.DRAINING
    assert await hand.work_off() == ["before"]


async def test_pausing_and_changing_a_pool_at_once_loses_neither(world: World) -> None:
    other = await world.another()
    for n in range(1, 30):
        await world.pool(SMALL, 1_000)
        await asyncio.gather(
            world.queue.pools.pause(SMALL),
            other.pools.define(Pool(name=SMALL, slots=n, mode=PoolMode.PAUSED)),
            world.queue.pools.pause(SMALL),
        )
        assert (await world.queue.pools.get(SMALL)).slots == n


@pytest.mark.req("DEC-011", error=True)
async def test_an_unknown_pool_cannot_be_paused_or_removed(world: World) -> None:
    pools = world.queue.pools
    for act in (pools.get, pools.pause, pools.drain, pools.open, pools.remove):
        with pytest.raises(UnknownPool, match="nowhere"):
            await act(PoolName("nowhere"))


@pytest.mark.req("DEC-011", error=True)
async def test_a_pool_without_sense_is_refused(world: World) -> None:
    before = await world.snapshot()

    for bad in ({"slots": -1}, {"slots": 10**7}, {"slots": True}, {"prefetch": -1}, {"ageing_ms": 0}, {"name": "A b"}):
        with pytest.raises(InvalidInput):
            await world.queue.pools.define(Pool(**{"name": "fine", "slots": 1, **bad}))  # type: ignore[arg-type]

    assert await world.snapshot() == before


@pytest.mark.req("CON-002", error=True)
async def test_a_pool_that_is_needed_cannot_be_removed(world: World) -> None:
    await world.pool(SMALL, 1)
    await world.pool("extra", 1)
    await world.put(pool=SMALL, resources=["extra"])

    for name in (SMALL, PoolName("extra")):
        with pytest.raises(PoolInUse):
            await world.queue.pools.remove(name)

    hand = await world.hand()
    await hand.work_off(SMALL)
    await world.queue.pools.remove(SMALL)
    await world.queue.pools.remove(PoolName("extra"))
    assert SMALL not in {pool.name for pool in await world.queue.pools.all()}


# Ageing.


async def test_without_ageing_a_flood_of_higher_priority_goes_first(world: World) -> None:
    await world.put("low")
    world.clock.advance(3_600)
    await world.put("high", priority=1)

    assert await world.kinds() == ["high", "low"]


async def test_with_ageing_a_starving_job_wins_in_the_end(world: World) -> None:
    await world.pool("aged", 1, ageing_ms=1_000)
    await world.put("starving", pool="aged", priority=0)
    hand = await world.hand()
    ran: list[str] = []

    for n in range(20):
        await world.put(f"flood{n}", pool="aged", priority=10)
        ran += await _run_one(hand, PoolName("aged"))
        world.clock.advance(1)

    assert ran[:10] == [f"flood{n}" for n in range(10)]
    assert ran.index("starving") in (10, 11)


async def test_switching_ageing_on_and_off_orders_what_already_waits(world: World) -> None:
    await world.pool("aged", 5)
    old = await world.put("old", pool="aged", lane="lane")
    world.clock.advance(60)
    high = await world.put("high", pool="aged", priority=3, lane="lane")
    assert await world.kinds(PoolName("aged")) == ["high"]

    await world.pool("aged", 5, ageing_ms=1_000)
    assert [await world.state(job) for job in (old, high)] == ["ready", "waiting"]

    await world.pool("aged", 5)
    assert [await world.state(job) for job in (old, high)] == ["waiting", "ready"]


async def test_switching_ageing_on_reorders_lanes_that_wait_in_other_pools_too(world: World) -> None:
    await world.pool("aged", 5)
    head = await world.put("head", pool="aged", lane="lane", priority=1)
    behind = await world.put("behind", lane="lane")

    await world.pool("aged", 5, ageing_ms=1_000)

    assert [await world.state(job) for job in (head, behind)] == ["waiting", "ready"]


async def _run_one(hand: Hand, pool: PoolName) -> list[str]:
    claimed = await hand.claim(1, pool)
    await hand.finish(*claimed)
    return [job.kind for job in claimed]


# A session's capacity.


@pytest.mark.req("INV-003")
async def test_a_session_runs_one_job_at_a_time_unless_told_otherwise(world: World) -> None:
    await world.put("a")
    await world.put("b")
    session = await world.queue.sessions.open(name="plain")
    hand = Hand(world.queue, session.id)

    assert session.capacity == 1
    (first,) = await hand.claim()
    exchange = await hand.exchange(reports=[Report(first, COMPLETED)], wanted={WIDE: Wanted(1)})
    assert [job.kind for job in exchange.started] == ["b"], "an executor that becomes free takes the next at once"


@pytest.mark.req("INV-003", error=True)
async def test_a_session_that_asks_for_more_than_its_capacity_gets_nothing(world: World) -> None:
    for kind in "abcd":
        await world.put(kind)
    hand = await world.hand(capacity=2)
    before = await world.snapshot()

    with pytest.raises(OverCapacity) as refused:
        await hand.claim(3)
    assert refused.value.session == hand.session
    assert await world.snapshot() == before

    first, _ = await hand.claim(2)
    before = await world.snapshot()
    with pytest.raises(OverCapacity):
        await hand.claim(1)
    with pytest.raises(OverCapacity):
        await hand.exchange(reports=[Report(first, COMPLETED)], wanted={WIDE: Wanted(2)})
    assert await world.snapshot() == before, "a refused exchange records nothing"
    held = await hand.hold(1)
    with pytest.raises(OverCapacity):
        await hand.exchange(starting=held)


@pytest.mark.req("INV-003")
async def test_of_a_hundred_claims_at_once_a_session_wins_only_what_it_can_run(world: World) -> None:
    await world.queue.jobs.put_many([new(f"n{n}") for n in range(100)])
    other = await world.another()
    one = await world.hand(capacity=3)
    two = Hand(other, one.session)
    two.token = 1_000

    async def claim(hand: Hand) -> int:
        try:
            return len(await hand.claim(1))
        except OverCapacity:
            return 0

    granted = await asyncio.gather(*(claim((one, two)[n % 2]) for n in range(40)))

    assert sum(granted) == 3
    assert await world.rows("SELECT busy FROM sessions") == [(3,)]
