"""Jobs whose time comes, and jobs whose time is long past."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.instants import Instant
from tests.contracts.world import WIDE, World, new


async def test_due_jobs_become_ready_in_the_pools_order(world: World) -> None:
    now = world.clock.now()
    await world.put("second", run_at=Instant(now + 3_000_000))
    await world.put("third", run_at=Instant(now + 1_000_000))
    await world.put("first", run_at=Instant(now + 2_000_000), priority=5)
    assert await world.kinds() == []

    world.clock.advance(3)
    assert await world.queue.jobs.stage() is None

    assert await world.kinds() == ["first", "second", "third"]


async def test_staging_answers_when_the_next_job_is_due(world: World) -> None:
    now = world.clock.now()
    assert await world.queue.jobs.stage() is None
    await world.put("later", run_at=Instant(now + 7_000_000))
    await world.put("soon", run_at=Instant(now + 2_000_000))

    assert await world.queue.jobs.stage() == now + 2_000_000
    world.clock.advance(micros=1_999_999)
    assert await world.queue.jobs.stage() == now + 2_000_000
    assert await world.kinds() == []
    world.clock.advance(micros=1)
    assert await world.queue.jobs.stage() == now + 7_000_000
    assert await world.kinds() == ["soon"]


async def test_a_crowd_that_is_due_at_once_becomes_ready_a_batch_at_a_time(world: World) -> None:
    due = Instant(world.clock.now() + 1_000_000)
    await world.queue.jobs.put_many([new(f"n{n}", run_at=due, lane=f"lane {n % 300}") for n in range(600)])
    world.clock.advance(2)

    assert await world.queue.jobs.stage() == due, "there are more: come again at once"
    assert await world.queue.jobs.stage() is None

    assert len(await world.kinds()) == 300


async def test_a_job_asked_for_in_the_past_is_ready_now(world: World) -> None:
    job = await world.put(run_at=Instant(world.clock.now() - 1))

    assert await world.state(job) == "ready"


async def test_pruning_forgets_only_what_ended_before(world: World) -> None:
    hand = await world.hand()
    ended = []
    for _ in range(3):
        ended.append(await world.put())
        await hand.work_off()
        world.clock.advance(10)
    live = await world.put("live")
    border = (await world.ended(ended[1])).finished_at

    assert await world.queue.jobs.prune(before=border) == 1
    assert await world.queue.jobs.prune(before=border) == 0

    rows = await world.rows("SELECT id FROM finished_jobs ORDER BY finished_at")
    assert [job for (job,) in rows] == ended[1:]
    assert await world.queue.jobs.prune(before=Instant(world.clock.now() + 10**12)) == 2
    assert await world.state(live) == "ready"


async def test_pruning_many_counts_them_all(world: World) -> None:
    await world.queue.jobs.put_many([new(f"n{n}") for n in range(1_000)])
    await world.put("last")
    hand = await world.hand(2_000)
    await world.pool(WIDE, 2_000)
    await hand.finish(*await hand.claim(2_000))

    assert await world.queue.jobs.prune(before=Instant(world.clock.now() + 1)) == 1_001


async def test_what_is_upcoming_is_answered_up_to_a_bound(world: World) -> None:
    for n in range(5):
        await world.put(f"n{n}")

    assert [job.kind for job in await world.queue.jobs.upcoming(WIDE, most=2)] == ["n0", "n1"]
    for most in (0, 10_001):
        with pytest.raises(InvalidInput):
            await world.queue.jobs.upcoming(WIDE, most=most)
