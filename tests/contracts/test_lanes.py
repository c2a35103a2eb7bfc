"""Lanes: jobs of one lane run one at a time, the best first, and no lane is ever forgotten."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import COMPLETED, Job
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import Report, Wanted
from tests.contracts.world import WIDE, World, new


async def _states(world: World, *jobs: JobId) -> list[str]:
    return [await world.state(job) for job in jobs]


@pytest.mark.req("GRAPH-09")
async def test_jobs_of_one_lane_are_handed_out_one_at_a_time(world: World) -> None:
    for n in range(5):
        await world.put(f"n{n}", lane="lane")
    await world.put("free")
    hand = await world.hand()

    first = await hand.claim(100)
    again = await hand.claim(100)

    assert [job.kind for job in first] == ["n0", "free"]
    assert again == []
    await hand.finish(*first)
    assert await hand.work_off() == ["n1", "n2", "n3", "n4"]


@pytest.mark.req("GRAPH-09")
async def test_one_exchange_ends_a_job_and_brings_the_next_of_its_lane(world: World) -> None:
    await world.put("first", lane="lane")
    await world.put("second", lane="lane")
    hand = await world.hand()
    (first,) = await hand.claim()

    exchange = await hand.exchange(reports=[Report(first, COMPLETED)], wanted={WIDE: Wanted(1)})

    assert [job.kind for job in exchange.started] == ["second"]


@pytest.mark.req("GRAPH-09")
async def test_a_better_job_displaces_an_unclaimed_head(world: World) -> None:
    low = await world.put("low", lane="lane")
    middle = await world.put("middle", lane="lane", priority=5)
    high = await world.put("high", lane="lane", priority=9)
    least = await world.put("least", lane="lane", priority=-1)

    assert await _states(world, low, middle, high, least) == ["waiting", "waiting", "ready", "waiting"]
    hand = await world.hand()
    assert await hand.work_off() == ["high", "middle", "low", "least"]


@pytest.mark.req("GRAPH-09", error=True)
@pytest.mark.parametrize("held", [False, True])
async def test_a_better_job_never_displaces_a_claimed_head(world: World, held: bool) -> None:
    low = await world.put("low", lane="lane")
    hand = await world.hand()
    await (hand.hold() if held else hand.claim())

    high = await world.put("high", lane="lane", priority=9)

    assert await world.state(high) == "waiting"
    assert (await world.live(low)).session == hand.session
    assert await hand.claim(10) == []


@pytest.mark.req("GRAPH-09")
async def test_a_claim_given_back_steps_behind_a_better_job_that_came_meanwhile(world: World) -> None:
    low = await world.put("low", lane="lane")
    hand = await world.hand()
    held = await hand.hold()
    high = await world.put("high", lane="lane", priority=9)

    await world.queue.sessions.give_back(hand.session, held)

    assert await _states(world, low, high) == ["waiting", "ready"]


@pytest.mark.req("GRAPH-09")
async def test_cancelling_the_head_lets_the_next_one_lead(world: World) -> None:
    a, b, c = [await world.put(kind, lane="lane") for kind in "abc"]

    await world.queue.jobs.cancel(b, reason="not needed")
    assert await _states(world, a, b, c) == ["ready", "CANCELLED", "waiting"]

    await world.queue.jobs.cancel(a, reason="not needed")
    assert await _states(world, a, c) == ["CANCELLED", "ready"]


@pytest.mark.req("GRAPH-09")
async def test_a_scheduled_job_joins_its_lane_when_it_is_due(world: World) -> None:
    head = await world.put("head", lane="lane")
    soon = await world.put("soon", lane="lane", run_at=world.clock.now() + 1_000_000)
    best = await world.put("best", lane="lane", priority=9, run_at=world.clock.now() + 2_000_000)
    alone = await world.put("alone", lane="quiet", run_at=world.clock.now() + 1_000_000)
    assert await _states(world, head, soon, best, alone) == ["ready", "scheduled", "scheduled", "scheduled"]

    world.clock.advance(1)
    await world.queue.jobs.stage()
    assert await _states(world, head, soon, best, alone) == ["ready", "waiting", "scheduled", "ready"]

    world.clock.advance(1)
    await world.queue.jobs.stage()
    assert await _states(world, head, soon, best) == ["waiting", "waiting", "ready"]


@pytest.mark.req("GRAPH-09")
@pytest.mark.req("DEC-001")
async def test_a_retry_holds_its_lane_during_backoff(world: World) -> None:
    await world.put("first", lane="lane")
    behind = await world.put("behind", lane="lane")
    hand = await world.hand()
    (first,) = await hand.claim()

    await hand.fail(first)

    retry = (await world.queue.jobs.chain(first.id))[-1]
    assert isinstance(retry, Job)
    assert (retry.state, await world.state(behind)) == ("backoff", "waiting")
    assert await hand.claim() == []
    world.clock.advance(10)
    await world.queue.jobs.stage()
    assert await hand.work_off() == ["first", "behind"]


@pytest.mark.req("GRAPH-09")
async def test_a_retry_whose_time_has_come_lets_a_better_job_of_its_lane_go_first(world: World) -> None:
    await world.put("first", lane="lane")
    hand = await world.hand()
    (first,) = await hand.claim()
    await hand.fail(first)
    await world.put("better", lane="lane", priority=9)

    world.clock.advance(10)
    await world.queue.jobs.stage()

    assert await hand.work_off() == ["better", "first"]


@pytest.mark.req("GRAPH-09")
async def test_a_job_that_fails_for_good_frees_its_lane(world: World) -> None:
    await world.put("first", lane="lane", retry=NO_RETRY)
    behind = await world.put("behind", lane="lane")
    hand = await world.hand()
    (first,) = await hand.claim()

    await hand.fail(first)

    assert await _states(world, first.id, behind) == ["FAILED", "ready"]


@pytest.mark.req("GRAPH-09")
async def test_a_lane_reaches_across_pools(world: World) -> None:
    await world.pool("other", 5)
    here = await world.put("here", lane="lane")
    there = await world.put("there", lane="lane", pool="other")
    hand = await world.hand()

    assert await hand.claim(5, PoolName("other")) == []
    (first,) = await hand.claim()
    await hand.finish(first)

    assert await _states(world, here, there) == ["COMPLETED", "ready"]
    assert [job.kind for job in await hand.claim(5, PoolName("other"))] == ["there"]


@pytest.mark.req("GRAPH-09")
async def test_a_head_in_a_paused_pool_holds_its_lane(world: World) -> None:
    """It is first in line: the pause is its owner's wish, and serial means serial."""
    await world.pool("other", 5)
    await world.put("paused", lane="lane", pool="other")
    await world.queue.pools.pause(PoolName("other"))
    await world.put("behind", lane="lane")
    hand = await world.hand()

    assert await hand.claim(5) == []
    await world.queue.pools.open(PoolName("other"))
    assert [job.kind for job in await hand.claim(5, PoolName("other"))] == ["paused"]


@pytest.mark.req("GRAPH-09")
async def test_many_lanes_in_one_batch_get_one_head_each(world: World) -> None:
    await world.queue.jobs.put_many([new(f"n{n}", lane=f"lane {n % 10}", priority=n % 7) for n in range(200)])

    heads = await world.rows("SELECT lane, count(*) FROM jobs WHERE state = 'ready' GROUP BY lane")
    assert sorted(heads) == [(f"lane {n}", 1) for n in range(10)]
    hand = await world.hand()
    assert len(await hand.work_off()) == 200


@pytest.mark.req("GRAPH-09", error=True)
async def test_a_lane_without_a_printable_name_is_refused(world: World) -> None:
    for lane in ("", "x" * 256, "a\0", "\n"):
        with pytest.raises(InvalidInput, match="lane"):
            await world.put(lane=lane)
