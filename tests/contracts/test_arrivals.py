"""A job that was put alone is a job like any other at once, for everyone, wherever its store keeps it meanwhile."""

import pytest

from duly.application.health import Health
from duly.application.pace import Pace
from duly.domain.errors import Conflict
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import Entry, Job, JobState
from duly.domain.pools import PoolDraining, PoolInUse, UnknownPool
from duly.domain.retries import RetryPolicy
from tests.contracts.world import WIDE, World, new

pytestmark = pytest.mark.req("DEC-002")


def _entry(world: World, number: int = 1) -> Entry:
    now = world.clock.now()
    return Entry(id=f"job_{number}", new=new(f"n{number}"), payload="{}", created_at=now, position=int(now) + number)  # type: ignore[arg-type]


async def test_whoever_looks_sees_it_before_anybody_has_written_again(world: World) -> None:
    other = await world.another()

    put = await world.put("mail", params={"n": 1}, retry=RetryPolicy(max_attempts=3, backoff_ms=7), timeout_ms=9)

    for queue in (world.queue, other):
        job = await queue.jobs.get(put)
        assert isinstance(job, Job)
        assert (job.kind, job.payload, job.pool, job.state) == ("mail", '{"n":1}', WIDE, JobState.READY)
        assert (job.attempt, job.retry.max_attempts, job.retry.backoff_ms, job.timeout_ms) == (1, 3, 7, 9)
        assert (job.key, job.lane, job.resources, job.session, job.chain) == (None, None, (), None, put)
        assert await queue.jobs.chain(put) == [job]
        assert await queue.jobs.upcoming(WIDE) == [job]
        assert await queue.jobs.list(owner=None) == [job]
        assert (await Health(queue.storage, Pace()).census()).jobs == {(WIDE, JobState.READY): 1}


async def test_it_is_the_same_job_after_others_have_written(world: World) -> None:
    put = await world.put("mail", params={"n": 1}, priority=3, run_at=Instant(world.clock.now() + SECOND))
    before = await world.live(put)

    await world.pool("another", 1)

    assert await world.live(put) == before
    assert await world.queue.jobs.list(owner=None) == [before]


async def test_it_takes_its_place_among_those_that_were_there(world: World) -> None:
    await world.queue.jobs.put_many([new("late", priority=-1), new("first", priority=2)])
    for kind, priority in (("fourth", 0), ("second", 2), ("third", 1)):
        await world.put(kind, priority=priority)
    order = ["first", "second", "third", "fourth", "late"]

    assert await world.kinds() == order
    assert [job.kind for job in await (await world.hand()).claim(10)] == order


async def test_another_process_claims_it_at_once(world: World) -> None:
    hand = await world.hand(queue=await world.another())
    put = await world.put("mail")

    (claimed,) = await hand.claim(10)
    assert claimed.id == put
    await hand.finish(claimed)
    assert await world.state(put) == "COMPLETED"
    assert await hand.claim(10) == []


async def test_it_can_be_withdrawn_at_once(world: World) -> None:
    other = await world.another()
    here, there = await world.put("here"), await world.put("there")

    assert await world.queue.jobs.cancel(here, reason="changed my mind")
    assert await other.jobs.cancel(there, reason="changed my mind")
    assert [await world.state(job) for job in (here, there)] == ["CANCELLED", "CANCELLED"]
    assert await world.kinds() == []


async def test_it_can_be_moved_at_once(world: World) -> None:
    await world.put("first")
    last = await world.put("last")

    await world.queue.order.to_front(last)

    assert await world.kinds() == ["last", "first"]


async def test_one_that_is_not_due_waits_for_its_time(world: World) -> None:
    put = await world.put("later", run_at=Instant(world.clock.now() + SECOND))
    assert await world.state(put) == "scheduled"
    assert await world.queue.jobs.stage() == world.clock.now() + SECOND

    world.clock.advance(1)
    await world.queue.jobs.stage()

    assert await world.kinds() == ["later"]


async def test_ageing_that_begins_later_counts_for_it(world: World) -> None:
    await world.put("old")
    world.clock.advance(10)
    await world.put("new", priority=1)
    assert await world.kinds() == ["new", "old"]

    await world.pool(WIDE, 1_000, ageing_ms=1_000)

    assert await world.kinds() == ["old", "new"]


@pytest.mark.req("DEC-002", error=True)
async def test_a_pool_that_takes_none_refuses_it(world: World) -> None:
    await world.queue.pools.drain(WIDE)

    with pytest.raises(PoolDraining):
        await world.put("work")
    with pytest.raises(UnknownPool):
        await world.put("work", pool="nowhere")
    assert await world.queue.jobs.list(owner=None) == []


@pytest.mark.req("DEC-002", error=True)
async def test_its_pool_cannot_be_removed(world: World) -> None:
    await world.pool("brief", 1)
    await world.put("work", pool="brief")

    with pytest.raises(PoolInUse) as refused:
        await world.queue.pools.remove(PoolName("brief"))
    assert isinstance(refused.value, Conflict)


async def test_a_put_that_is_repeated_finds_its_own_job_whatever_has_become_of_it(world: World) -> None:
    entry = _entry(world)
    storage = world.queue.storage
    is_added = storage.put_at_once(entry)
    hand = await world.hand() if is_added is None else None

    async def put_again() -> None:
        assert not storage.put_at_once(entry)
        (put,) = await world.transact(lambda tx: tx.jobs.put([entry]))
        assert put.job_id == entry.id
        assert len(await world.queue.jobs.chain(entry.id)) == 1

    if is_added:
        assert storage.put_at_once(entry) is False, "while it has only arrived"
    await put_again()
    hand = hand or await world.hand()
    (claimed,) = await hand.claim(10)
    await put_again()
    await hand.finish(claimed)
    await put_again()
    assert await hand.claim(10) == []
