"""The order in which a pool runs its jobs, and moves within it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duly.application.order import Order
from duly.domain.errors import InvalidInput
from duly.domain.groups import NewGroup, NewMember
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import Job, JobAlreadyFinished, JobLocked, JobsApart, Place, UnknownJob
from tests.contracts.world import WIDE, Hand, World, new

Move = Callable[[Order, JobId, JobId], Awaitable[None]]
MOVES: dict[str, Move] = {
    "before": lambda order, job, other: order.before(job, other),
    "after": lambda order, job, other: order.after(job, other),
    "swap": lambda order, job, other: order.swap(job, other),
}


async def _put_all(world: World, kinds: str, **rest: Any) -> dict[str, JobId]:
    return {kind: await world.put(kind, **rest) for kind in kinds}


@pytest.mark.req("INV-004")
async def test_jobs_run_by_priority_then_position_then_age(world: World) -> None:
    for kind, priority in (("c", 0), ("a", 9), ("d", 0), ("e", -3), ("b", 9)):
        await world.put(kind, priority=priority)
        world.clock.advance(1)
    hand = await world.hand()

    assert await world.kinds() == list("abcde")
    assert await hand.work_off() == list("abcde")


@pytest.mark.req("INV-004")
async def test_a_claim_of_many_hands_them_out_in_order(world: World) -> None:
    for n in range(30):
        await world.put(f"n{n}", priority=n % 3)
    hand = await world.hand()

    claimed = await hand.claim(30)

    expected = sorted(range(30), key=lambda n: (-(n % 3), n))
    assert [job.kind for job in claimed] == [f"n{n}" for n in expected]


@pytest.mark.req("INV-004")
async def test_a_clock_set_back_puts_no_newer_job_before_an_older_one(world: World) -> None:
    await world.put("older")
    world.clock.step(-3_600)

    await world.put("newer")

    assert await world.kinds() == ["older", "newer"]


@pytest.mark.req("INV-004")
async def test_of_two_jobs_at_one_position_the_older_runs_first(world: World) -> None:
    """Two processes may draw one microsecond; the order is total all the same."""
    other = await world.another()
    await world.put("a")
    await other.jobs.put(new("b"))

    rows = await world.rows("SELECT count(DISTINCT position) FROM jobs")
    assert rows == [(1,)]
    assert await world.kinds() == ["a", "b"]


@pytest.mark.req("DEC-005")
@pytest.mark.parametrize(
    ("move", "job", "other", "expected"),
    [
        ("before", "d", "b", "adbce"),
        ("before", "a", "e", "bcdae"),
        ("before", "e", "a", "eabcd"),
        ("before", "a", "b", "abcde"),
        ("before", "c", "c", "abcde"),
        ("after", "a", "c", "bcade"),
        ("after", "e", "a", "aebcd"),
        ("after", "a", "e", "bcdea"),
        ("after", "c", "b", "abcde"),
        ("swap", "b", "d", "adcbe"),
        ("swap", "a", "e", "ebcda"),
        ("swap", "c", "c", "abcde"),
    ],
)
@pytest.mark.parametrize("tied", [False, True])
async def test_a_job_moves_right_where_it_was_told_to(
    world: World, *, move: str, job: str, other: str, expected: str, tied: bool
) -> None:
    if tied:
        jobs = {kind: (await (await world.another()).jobs.put(new(kind))).job_id for kind in "abcde"}
        assert await world.rows("SELECT count(DISTINCT position) FROM jobs") == [(1,)]
    else:
        jobs = await _put_all(world, "abcde")

    await MOVES[move](world.queue.order, jobs[job], jobs[other])

    assert await world.kinds() == list(expected)


@pytest.mark.req("DEC-005")
async def test_a_job_moved_to_the_end_stays_before_jobs_that_come_later(world: World) -> None:
    jobs = await _put_all(world, "ab")

    for _ in range(5):
        world.clock.advance(micros=10)
        await world.queue.order.after(jobs["a"], jobs["b"])
        await world.queue.order.after(jobs["b"], jobs["a"])
    world.clock.advance(micros=10)
    await world.put("c")

    assert await world.kinds() == ["a", "b", "c"]


@pytest.mark.req("DEC-005")
async def test_a_job_moved_next_to_another_takes_its_priority(world: World) -> None:
    low = await world.put("low", priority=1)
    high = await world.put("high", priority=9)
    middle = await world.put("middle", priority=5)

    await world.queue.order.before(low, high)
    await world.queue.order.after(high, middle)

    assert await world.kinds() == ["low", "middle", "high"]
    assert [(await world.live(job)).priority for job in (low, middle, high)] == [9, 5, 5]


@pytest.mark.req("DEC-005")
async def test_swapping_jobs_of_two_priorities_swaps_their_places(world: World) -> None:
    jobs = {kind: await world.put(kind, priority=priority) for kind, priority in zip("abcd", (9, 9, 1, 1), strict=True)}

    await world.queue.order.swap(jobs["a"], jobs["d"])

    assert await world.kinds() == list("dbca")


@pytest.mark.req("DEC-005")
async def test_a_job_moved_to_the_front_runs_next(world: World) -> None:
    jobs = await _put_all(world, "abc")
    await world.put("urgent", priority=100)

    await world.queue.order.to_front(jobs["c"])
    await world.queue.order.to_front(jobs["c"])

    assert await world.kinds() == ["c", "urgent", "a", "b"]


@pytest.mark.req("INV-004")
async def test_a_job_with_a_new_priority_takes_its_place_by_age(world: World) -> None:
    jobs = await _put_all(world, "abcd", priority=5)

    await world.queue.order.reprioritise(jobs["b"], 9)
    await world.queue.order.reprioritise(jobs["a"], 1)
    assert await world.kinds() == list("bcda")

    await world.queue.order.reprioritise(jobs["b"], 5)
    await world.queue.order.reprioritise(jobs["a"], 5)
    assert await world.kinds() == list("abcd")


@pytest.mark.req("DEC-005")
async def test_moves_are_exact_in_a_pool_with_ageing(world: World) -> None:
    await world.pool("aged", 10, ageing_ms=1_000)
    jobs = {}
    for kind in "abcde":
        jobs[kind] = await world.put(kind, pool="aged", priority=ord(kind) % 3)
        world.clock.advance(10)
    aged = PoolName("aged")
    before = await world.kinds(aged)
    assert before == list("abcde"), "ten seconds of waiting outweigh two priorities"

    await world.queue.order.before(jobs["e"], jobs["b"])
    await world.queue.order.after(jobs["a"], jobs["c"])
    await world.queue.order.swap(jobs["d"], jobs["e"])
    await world.queue.order.to_front(jobs["c"])

    assert await world.kinds(aged) == list("cdbae")


@pytest.mark.req("DEC-005")
async def test_a_thousand_jobs_go_between_the_same_two_neighbours(world: World) -> None:
    """A renumbering touches a few rows only, and the order is exact throughout."""
    first = await world.put("first")
    last = await world.put("last")
    puts = await world.queue.jobs.put_many([new(f"n{n}") for n in range(1_000)])
    changed = 0

    for n, put in enumerate(puts):
        await world.queue.order.before(put.job_id, last)
        if n % 250 == 249:
            assert await world.kinds() == _between(n + 1)
            changed += 1

    assert changed == 4
    assert (await world.live(first)).position < (await world.live(last)).position


def _between(count: int) -> list[str]:
    return ["first", *(f"n{n}" for n in range(count)), "last", *(f"n{n}" for n in range(count, 1_000))]


@pytest.mark.req("DEC-005")
async def test_making_room_renumbers_a_few_jobs_only(world: World) -> None:
    jobs = [put.job_id for put in await world.queue.jobs.put_many([new(f"n{n}") for n in range(300)])]
    before = dict(await world.rows("SELECT id, position FROM jobs"))

    await world.queue.order.before(jobs[-1], jobs[150])

    after = dict(await world.rows("SELECT id, position FROM jobs"))
    moved = [job for job in jobs if before[job] != after[job]]
    expected = [*range(150), 299, *range(150, 299)]
    assert await world.kinds() == [f"n{n}" for n in expected]
    assert len(moved) <= 152, "the jobs behind the gap stay where they are"


@pytest.mark.req("DEC-005")
@pytest.mark.req("DEC-008")
async def test_the_order_survives_closing_and_opening_the_store(world: World) -> None:
    jobs = await _put_all(world, "abcdef")
    await world.queue.order.before(jobs["f"], jobs["b"])
    await world.queue.order.swap(jobs["a"], jobs["d"])
    await world.queue.order.reprioritise(jobs["e"], 3)
    expected = await world.kinds()

    await world.reopen()

    assert expected == list("edfbca")
    assert await world.kinds() == expected
    hand = await world.hand()
    assert await hand.work_off() == expected


@pytest.mark.req("DEC-005")
async def test_a_move_within_a_lane_changes_its_head(world: World) -> None:
    jobs = {kind: await world.put(kind, lane="lane") for kind in "abc"}

    await world.queue.order.before(jobs["c"], jobs["a"])
    assert [await world.state(jobs[kind]) for kind in "abc"] == ["waiting", "waiting", "ready"]

    await world.queue.order.after(jobs["c"], jobs["b"])
    assert [await world.state(jobs[kind]) for kind in "abc"] == ["ready", "waiting", "waiting"]

    await world.queue.order.reprioritise(jobs["b"], 5)
    assert [await world.state(jobs[kind]) for kind in "abc"] == ["waiting", "ready", "waiting"]

    await world.queue.order.swap(jobs["b"], jobs["c"])
    assert [await world.state(jobs[kind]) for kind in "abc"] == ["waiting", "waiting", "ready"]


@pytest.mark.req("DEC-005")
async def test_a_scheduled_job_can_be_moved_before_its_time_comes(world: World) -> None:
    first = await world.put("first")
    later = await world.put("later", run_at=world.clock.now() + 1_000_000)

    await world.queue.order.before(later, first)

    assert await world.kinds() == ["first"]
    world.clock.advance(1)
    await world.queue.jobs.stage()
    assert await world.kinds() == ["later", "first"]


# Refusals.


@pytest.mark.req("DEC-005", error=True)
@pytest.mark.parametrize("move", sorted(MOVES))
@pytest.mark.parametrize("held", [False, True])
async def test_a_claimed_job_keeps_its_place(world: World, move: str, held: bool) -> None:
    claimed = await world.put("claimed")
    other = await world.put("other")
    hand = await world.hand()
    await (hand.hold() if held else hand.claim())
    before = await world.snapshot()

    for pair in ((claimed, other), (other, claimed)):
        with pytest.raises(JobLocked) as refused:
            await MOVES[move](world.queue.order, *pair)
        assert refused.value.job_id == claimed

    assert await world.snapshot() == before


@pytest.mark.req("DEC-005", error=True)
@pytest.mark.parametrize("move", sorted(MOVES))
async def test_a_finished_or_unknown_job_has_no_place(world: World, move: str) -> None:
    finished = await world.put("finished")
    hand = await world.hand()
    await hand.work_off()
    other = await world.put("other")
    unknown = JobId("job_unknown")

    for pair in ((finished, other), (other, finished)):
        with pytest.raises(JobAlreadyFinished):
            await MOVES[move](world.queue.order, *pair)
    for pair in ((unknown, other), (other, unknown)):
        with pytest.raises(UnknownJob):
            await MOVES[move](world.queue.order, *pair)


@pytest.mark.req("DEC-005", error=True)
@pytest.mark.parametrize("move", sorted(MOVES))
async def test_jobs_of_two_pools_have_no_order_between_them(world: World, move: str) -> None:
    here = await world.put("here")
    there = await world.put("there", pool="default")

    with pytest.raises(JobsApart):
        await MOVES[move](world.queue.order, here, there)


@pytest.mark.req("INV-004", error=True)
async def test_a_priority_beyond_the_bounds_is_refused(world: World) -> None:
    job = await world.put()

    for priority in (32_768, -32_768, True):
        with pytest.raises(InvalidInput, match="priority"):
            await world.queue.order.reprioritise(job, priority)
    for locked in ("to_front", "reprioritise"):
        with pytest.raises(UnknownJob):
            await getattr(world.queue.order, locked)(JobId("job_unknown"), *([1] if locked == "reprioritise" else []))

    assert (await world.live(job)).priority == 0


# Against a list.


@pytest.mark.req("DEC-005")
def test_any_moves_give_the_order_that_a_list_gives(world: World) -> None:
    """Moves, new jobs, claims that come back: the list is the model."""
    actions = st.lists(
        st.tuples(
            st.sampled_from(["before", "before", "after", "after", "swap", "to_front", "put", "return"]),
            st.integers(0, 999),
            st.integers(0, 999),
        ),
        max_size=40,
    )

    @settings(
        max_examples=60 if world.store == "sqlite" else 12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(actions)
    def check(steps: list[tuple[str, int, int]]) -> None:
        asyncio.run(_play(world, steps))

    check()


async def _play(world: World, steps: list[tuple[str, int, int]]) -> None:
    await world.open()
    try:
        pool = PoolName(f"p{world.dice.new_id('x')[-12:]}")
        await world.pool(pool, 1_000)
        model = [await world.put(f"n{n}", pool=pool) for n in range(5)]
        hand = await world.hand()
        for action, one, two in steps:
            world.clock.advance(micros=10)
            job, other = model[one % len(model)], model[two % len(model)]
            await _step(world, hand, pool, model, action=action, job=job, other=other)
            assert [job.id for job in await world.queue.jobs.upcoming(pool)] == model, action
    finally:
        await world.close()


async def _step(
    world: World, hand: Hand, pool: PoolName, model: list[JobId], *, action: str, job: JobId, other: JobId
) -> None:
    order = world.queue.order
    if action == "put":
        model.append(await world.put("new", pool=pool))
    elif action == "return":
        await _move_while_the_first_is_claimed(world, hand, pool, model)
    elif action == "to_front":
        await order.to_front(job)
        model.insert(0, model.pop(model.index(job)))
    elif job != other:
        await MOVES[action](order, job, other)
        if action == "swap":
            i, k = model.index(job), model.index(other)
            model[i], model[k] = model[k], model[i]
        else:
            model.remove(job)
            model.insert(model.index(other) + (action == "after"), job)


async def _move_while_the_first_is_claimed(world: World, hand: Hand, pool: PoolName, model: list[JobId]) -> None:
    """Its number may be given away meanwhile; it comes back to the front all the same."""
    held = await hand.hold(1, pool)
    assert [job.id for job in held] == model[:1]
    if len(model) > 2:
        await world.queue.order.before(model[-1], model[1])
        model.insert(1, model.pop())
    await world.queue.sessions.give_back(hand.session, held)


async def test_every_page_of_the_order_follows_the_one_before_however_long_it_is(world: World) -> None:
    """An owner's own are shown with the places that they have among everybody's."""
    members = [NewMember(job=new("own"))]
    for _ in range(3):
        await world.queue.jobs.put_many([new() for _ in range(3_500)])
        await world.queue.groups.create(NewGroup(members=members), owner="ann")

    async def paged(owner: str | None, most: int) -> list[tuple[int, str]]:
        seen: list[tuple[int, Job]] = []
        while page := await world.queue.jobs.queued(
            WIDE, owner=owner, after=Place(*seen[-1][1].order) if seen else None, most=most
        ):
            seen += page
        return [(place, job.kind) for place, job in seen]

    kinds = ([*["work"] * 3_500, "own"]) * 3
    assert await paged(None, 1_000) == list(enumerate(kinds, 1))
    assert await paged("ann", 2) == [(3_501, "own"), (7_002, "own"), (10_503, "own")]
    assert await paged("bob", 2) == []
