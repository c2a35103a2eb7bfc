"""Limits per owner: however many jobs of one are ready, others get their places."""

import asyncio
from collections import Counter

import pytest

from duly.domain.groups import GroupMode, NewGroup, NewMember
from duly.domain.ids import JobKey, Lane, PoolName
from duly.domain.jobs import COMPLETED, NewJob
from duly.domain.pools import Pool
from duly.domain.sessions import ClaimedJob, Report, Wanted
from duly.domain.templates import NewTemplate
from tests.contracts.world import FAILED, Hand, World

FAIR = PoolName("fair")


async def _fair(world: World, slots: int = 4, per_owner: int | None = 2) -> None:
    await world.queue.pools.define(Pool(name=FAIR, slots=slots, per_owner=per_owner))
    for owner in ("ann", "bob"):
        await world.queue.templates.create(NewTemplate(name=f"of-{owner}", kind=owner, pool=FAIR), owner=owner)


async def _put(world: World, owner: str, count: int = 1) -> None:
    for _ in range(count):
        await world.queue.jobs.put_from(f"of-{owner}", owner=owner)


def _kinds(jobs: list[ClaimedJob]) -> dict[str, int]:
    return dict(Counter(job.kind for job in jobs))


async def _shares(world: World) -> dict[str, str | None]:
    return dict(await world.rows("SELECT kind, share FROM jobs"))


@pytest.mark.req("RISK-01")
async def test_a_flood_of_one_owner_leaves_places_for_another(world: World) -> None:
    await _fair(world, slots=6)
    await _put(world, "ann", 20)
    await _put(world, "bob", 2)
    hand = await world.hand(8)

    first = await hand.claim(8, FAIR)
    assert _kinds(first) == {"ann": 2, "bob": 2}
    assert await hand.claim(8, FAIR) == [], "there is room, and it is not hers"

    (done,) = [job for job in first if job.kind == "ann"][:1]
    assert _kinds(await _next(hand, done)) == {"ann": 1}, "her next, as soon as one of hers has ended"


async def _next(hand: Hand, *done: ClaimedJob) -> list[ClaimedJob]:

    exchange = await hand.exchange(reports=[Report(job, COMPLETED) for job in done], wanted={FAIR: Wanted(8)})
    return list(exchange.started)


@pytest.mark.req("RISK-01")
async def test_within_its_share_and_the_pool_the_order_is_as_ever(world: World) -> None:
    await _fair(world, slots=3)
    for n, priority in enumerate((0, 5, 9)):
        await world.queue.jobs.put_from("of-ann", {"n": n}, owner="ann", priority=priority)
    for n, priority in enumerate((1, 7), 3):
        await world.queue.jobs.put_from("of-bob", {"n": n}, owner="bob", priority=priority)
    hand = await world.hand(8)

    claimed = await hand.claim(8, FAIR)

    assert [job.payload for job in claimed] == ['{"n":2}', '{"n":4}', '{"n":1}'], "9, 7, 5"


@pytest.mark.req("RISK-01")
async def test_whose_a_job_is_says_its_template_its_group_its_schedule_or_its_lane(world: World) -> None:
    await _fair(world)
    await _put(world, "ann")
    members = [NewMember(template="of-bob")]
    await world.queue.groups.create(NewGroup(mode=GroupMode.PARALLEL, members=members), owner="bob")
    await world.queue.jobs.put(NewJob(kind="lane", pool=FAIR, lane=Lane("customer-7/orders")))
    await world.queue.jobs.put(NewJob(kind="short", pool=FAIR, lane=Lane("customer-8")))
    await world.queue.jobs.put(NewJob(kind="alone", pool=FAIR))
    await world.queue.jobs.put_many([NewJob(kind="many", pool=FAIR), NewJob(kind="many", pool=FAIR)])
    await world.queue.jobs.put_alike(NewJob(kind="alike", pool=FAIR), [{}, {}])

    assert await _shares(world) == {
        "ann": "ann",
        "bob": "bob",
        "lane": "customer-7",
        "short": "customer-8",
        "alone": "",
        "many": "",
        "alike": "",
    }


@pytest.mark.req("RISK-01")
async def test_the_share_follows_a_retry_and_a_key_that_is_put_again(world: World) -> None:
    await _fair(world, per_owner=1)
    await world.queue.jobs.put_from("of-ann", owner="ann", key=JobKey("k"))
    hand = await world.hand(8)
    (first,) = await hand.claim(8, FAIR)
    await hand.finish(first, ending=FAILED)
    assert await _shares(world) == {"ann": "ann"}, "its next attempt is hers"
    await world.queue.jobs.put(NewJob(kind="other", pool=FAIR, key=JobKey("k")))
    assert await _shares(world) == {"other": ""}


@pytest.mark.req("RISK-01")
async def test_a_limit_that_is_set_or_taken_away_counts_for_what_is_there(world: World) -> None:
    await _fair(world, slots=10, per_owner=None)
    await _put(world, "ann", 5)
    assert set((await _shares(world)).values()) == {None}
    hand = await world.hand(20)
    assert len(await hand.claim(1, FAIR)) == 1

    await world.queue.pools.change(FAIR, per_owner=2)
    assert set((await _shares(world)).values()) == {"ann"}
    assert len(await hand.claim(8, FAIR)) == 1, "one of hers runs already"
    await world.queue.pools.change(FAIR, per_owner=1)
    assert await hand.claim(8, FAIR) == []
    await world.queue.pools.change(FAIR, per_owner=None)
    assert set((await _shares(world)).values()) == {None}
    assert len(await hand.claim(8, FAIR)) == 3


@pytest.mark.req("RISK-01")
async def test_what_is_held_ready_counts_and_other_pools_are_claimed_as_ever(world: World) -> None:
    await _fair(world, slots=10)
    await _put(world, "ann", 5)
    await _put(world, "bob", 5)
    for n in range(3):
        await world.put(f"wide{n}")
    hand = await world.hand(20)

    exchange = await hand.exchange(wanted={FAIR: Wanted(1, prefetch=9), PoolName("wide"): Wanted(2)})

    assert _kinds([*exchange.started, *exchange.held]) == {"ann": 2, "bob": 2, "wide0": 1, "wide1": 1}
    assert await world.used(FAIR) == 4


@pytest.mark.req("RISK-01")
async def test_many_workers_at_once_never_exceed_a_share(world: World) -> None:
    await _fair(world, slots=6)
    await _put(world, "ann", 30)
    await _put(world, "bob", 10)
    queues = [world.queue, await world.another()]
    hands = [await world.hand(3, queue=queues[n % 2]) for n in range(4)]
    inside: Counter[str] = Counter()
    done: Counter[str] = Counter()

    async def work(hand: Hand) -> None:
        while done.total() < 40:
            for job in await hand.claim(3, FAIR):
                inside[job.kind] += 1
                assert inside[job.kind] <= 2
                await asyncio.sleep(0)
                inside[job.kind] -= 1
                done[job.kind] += 1
                await hand.finish(job)

    await asyncio.gather(*map(work, hands))

    assert done == {"ann": 30, "bob": 10}
    assert await world.used(FAIR) == 0
