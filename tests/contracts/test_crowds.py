"""Many jobs at once: what they share is checked once, and a crowd is one statement, with the meaning of many."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobKey, Lane, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import NewJob, PutOutcome
from duly.domain.payloads import value_of
from duly.domain.pools import PoolDraining, UnknownPool
from tests.contracts.world import WIDE, World, new

CROWD = 250


async def test_a_crowd_alike_is_put_in_the_order_of_its_params(world: World) -> None:
    puts = await world.queue.jobs.put_alike(new("work"), [{"n": n} for n in range(CROWD)])

    upcoming = await world.queue.jobs.upcoming(WIDE, most=1_000)
    assert [job.id for job in upcoming] == [put.job_id for put in puts]
    assert [value_of(job.payload)["n"] for job in upcoming] == list(range(CROWD))
    assert {put.outcome for put in puts} == {PutOutcome.CREATED}


async def test_a_crowd_is_stored_as_each_job_alone_would_be(world: World) -> None:
    asked = NewJob(kind="work", pool=WIDE, priority=3, timeout_ms=9, run_at=Instant(world.clock.now() + 5))

    crowd = await world.queue.jobs.put_alike(asked, [{}] * CROWD)
    (alone,) = await world.queue.jobs.put_many([asked])

    one, other = await world.live(crowd[0].job_id), await world.live(alone.job_id)
    for name in ("kind", "payload", "pool", "priority", "rank", "run_at", "state", "attempt", "retry", "timeout_ms"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.chain == one.id


async def test_a_crowd_in_one_lane_waits_behind_its_first(world: World) -> None:
    puts = await world.queue.jobs.put_alike(NewJob(kind="work", pool=WIDE, lane=Lane("l")), [{}] * CROWD)

    assert await world.state(puts[0].job_id) == "ready"
    assert await world.state(puts[-1].job_id) == "waiting"


async def test_a_crowd_takes_the_rank_of_an_ageing_pool(world: World) -> None:
    ageing = await world.pool("ageing", 5, ageing_ms=1_000)

    puts = await world.queue.jobs.put_alike(NewJob(kind="work", pool=ageing.name, priority=2), [{}] * CROWD)

    job = await world.live(puts[7].job_id)
    assert job.rank == job.position - 2 * 1_000_000


@pytest.mark.req("CON-002", error=True)
async def test_a_crowd_for_no_pool_leaves_nothing(world: World) -> None:
    before = await world.snapshot()

    with pytest.raises(UnknownPool):
        await world.queue.jobs.put_alike(NewJob(kind="work", pool=PoolName("nowhere")), [{}] * CROWD)
    stray = NewJob(kind="work", pool=PoolName("nowhere"))
    with pytest.raises(UnknownPool):
        await world.queue.jobs.put_many([*(new("fine") for _ in range(CROWD)), stray])

    assert await world.snapshot() == before


async def test_a_draining_pool_takes_no_crowd(world: World) -> None:
    await world.queue.pools.drain(WIDE)

    with pytest.raises(PoolDraining):
        await world.queue.jobs.put_alike(new("work"), [{}] * CROWD)


@pytest.mark.parametrize("given", [{"params": {"n": 1}}, {"key": JobKey("k")}])
async def test_what_each_must_have_of_its_own_cannot_be_shared(world: World, given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="params"):
        await world.queue.jobs.put_alike(NewJob(kind="work", pool=WIDE, **given), [{}])  # type: ignore[arg-type]


async def test_one_bad_payload_is_named_and_nothing_is_put(world: World) -> None:
    before = await world.snapshot()

    with pytest.raises(InvalidInput, match=r"params\[3\].x"):
        await world.queue.jobs.put_alike(new("work"), [{}, {}, {}, {"x": float("nan")}])

    assert await world.snapshot() == before
