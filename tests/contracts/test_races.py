"""Many callers and workers on several connections at once: no lane dies, no limit breaks, no job is lost."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from duly.bootstrap import Queue
from duly.domain.errors import Conflict, NotFound
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import COMPLETED, Entry, JobAlreadyFinished, JobLocked, UnknownJob
from duly.domain.retries import NO_RETRY, RetryPolicy
from duly.domain.sessions import Report, Wanted
from duly.ports.storage import Transaction
from tests.contracts.laws import LAWS, broken_laws
from tests.contracts.world import FAILED, WIDE, World, new

# Between two commits of others an unclaimed head may lead though a better one has just come; it is put right by the
# next put, end or move in that lane, and when nothing races it never happens.
A_BETTER_ONE_WAITS = frozenset({"an unclaimed head has a better job behind it"})


async def _queues(world: World, count: int) -> list[Queue]:
    return [world.queue, *[await world.another() for _ in range(count - 1)]]


@pytest.mark.req("GRAPH-09")
@pytest.mark.parametrize("lanes", [2, 100])
async def test_puts_that_race_finishes_leave_no_lane_dead_and_none_with_two_heads(world: World, lanes: int) -> None:
    queues = await _queues(world, 3)
    count = 900 if lanes > 2 else 450
    asked = iter(range(count))
    ran: Counter[JobId] = Counter()
    running: Counter[str] = Counter()
    put: list[JobId] = []

    async def put_some(queue: Queue) -> None:
        for n in asked:
            done = await queue.jobs.put(new(f"n{n}", lane=f"lane {n % lanes}", priority=n % 3))
            put.append(done.job_id)

    async def work(queue: Queue) -> None:
        hand = await world.hand(8, queue=queue)
        jobs = await hand.claim(4)
        idle = 0
        while idle < 200 and sum(ran.values()) < count:
            for job in jobs:
                running[str(job.lane)] += 1
                ran[job.id] += 1
            assert max(running.values(), default=0) <= 1, "two jobs of one lane at once"
            await asyncio.sleep(0)
            for job in jobs:
                running[str(job.lane)] -= 1
            idle = 0 if jobs else idle + 1
            reports = [Report(job, COMPLETED) for job in jobs]
            jobs = list((await hand.exchange(reports=reports, wanted={WIDE: Wanted(4)})).started)
        await hand.finish(*jobs)

    await asyncio.gather(
        *(put_some(queues[n % 3]) for n in range(9)),
        *(work(queues[n % 3]) for n in range(6)),
        _watch(world, ran, count),
    )

    assert sorted(ran) == sorted(put)
    assert set(ran.values()) == {1}, "each ran once"
    assert await world.rows("SELECT count(*) FROM jobs") == [(0,)]


@pytest.mark.req("GRAPH-09")
async def test_a_head_that_ends_while_many_join_its_lane_hands_it_to_one_of_them(world: World) -> None:
    queues = await _queues(world, 3)
    hand = await world.hand()
    for _ in range(6):
        await world.put("head", lane="lane")
        (head,) = await hand.claim()

        await asyncio.gather(
            *(queues[n % 3].jobs.put(new(f"n{n}", lane="lane")) for n in range(4)),
            hand.finish(head),
            *(queues[n % 3].jobs.put(new(f"n{n}", lane="lane")) for n in range(4, 9)),
        )

        assert len(await world.kinds()) == 1
        assert len(await hand.work_off()) == 9


@pytest.mark.store("postgres")
@pytest.mark.req("GRAPH-09")
async def test_a_head_cannot_end_unseen_while_another_job_joins_its_lane(postgres_world: World) -> None:
    world = postgres_world
    await world.put("head", lane="lane")
    hand = await world.hand()
    (head,) = await hand.claim()
    joined, may_commit = asyncio.Event(), asyncio.Event()
    now = world.clock.now()
    asked = new("behind", lane="lane")
    job = Entry(JobId(world.dice.new_id("job")), asked, asked.payload, now, position=int(now))

    async def put_slowly(tx: Transaction) -> None:
        await tx.jobs.put([job])
        joined.set()
        await may_commit.wait()

    putting = asyncio.create_task(world.queue.storage.transact(put_slowly))
    await joined.wait()
    finishing = asyncio.create_task(hand.finish(head))
    await asyncio.wait({finishing}, timeout=0.2)
    assert not finishing.done(), "it must wait for the decision of those who saw it lead"

    may_commit.set()
    await asyncio.gather(putting, finishing)

    assert await world.state(job.id) == "ready"


async def _watch(world: World, ran: Counter[JobId], count: int) -> None:
    """The laws hold at every commit, not only at the end."""
    for _ in range(15):
        if sum(ran.values()) >= count:
            return
        await asyncio.sleep(0.03)
        for law in ("a lane has two heads", "a lane is dead: jobs wait and there is no head"):
            assert await world.rows(LAWS[law]) == [], law


@pytest.mark.req("GRAPH-09")
async def test_everything_at_once_keeps_every_law(world: World) -> None:
    """Puts, claims, ends, failures, cancels, moves, hand-backs, stops, replacements: whatever may meet, meets."""
    queues = await _queues(world, 3)
    await world.pool("other", 4)
    await world.pool("extra", 2)
    known: list[JobId] = []
    steps = 60 if world.store == "sqlite" else 40

    await asyncio.gather(*(_stir(world, queues[n % 3], known, steps, seed=n) for n in range(12)))
    assert not await broken_laws(world.rows, apart_from=A_BETTER_ONE_WAITS)

    hand = await world.hand()
    for _ in range(200):
        world.clock.advance(100)
        await world.queue.jobs.stage()
        await world.queue.sessions.beat(hand.session)
        ran = [await hand.work_off(pool) for pool in (WIDE, PoolName("other"))]
        if not any(ran) and await world.rows("SELECT count(*) FROM jobs") == [(0,)]:
            break

    assert await world.rows("SELECT id, state, lane FROM jobs") == [], "all that was put came to its end"


async def _stir(world: World, queue: Queue, known: list[JobId], steps: int, *, seed: int) -> None:
    dice = random.Random(seed)
    hand = await world.hand(50, queue=queue)
    mine: list[Any] = []

    async def put() -> None:
        put = await queue.jobs.put(
            new(
                f"k{dice.randrange(9)}",
                lane=dice.choice([None, *(f"lane {n}" for n in range(4))]),
                key=dice.choice([None, None, *(f"key {n}" for n in range(4))]),
                pool=dice.choice(["wide", "wide", "other"]),
                priority=dice.randrange(3),
                resources=dice.choice([[], [], ["extra"]]),
                retry=dice.choice([NO_RETRY, RetryPolicy(max_attempts=2, backoff_ms=dice.choice([0, 1_000]))]),
                run_at=dice.choice([None, None, world.clock.now() + 500_000]),
            )
        )
        known.append(put.job_id)

    async def claim() -> None:
        wanted = {WIDE: Wanted(2, dice.randrange(2)), PoolName("other"): Wanted(1)}
        reports = [Report(job, dice.choice([COMPLETED, COMPLETED, FAILED])) for job in mine if job.state == "running"]
        starting = [job for job in mine if job.state == "claimed"]
        mine.clear()
        exchange = await hand.exchange(reports=reports, starting=starting, wanted=wanted)
        mine.extend([*exchange.started, *exchange.held])

    async def give_back() -> None:
        held = [job for job in mine if job.state == "claimed"]
        mine[:] = [job for job in mine if job.state != "claimed"]
        await queue.sessions.give_back(hand.session, held)

    async def stage() -> None:
        world.clock.advance(0.3)
        await queue.jobs.stage()

    def some() -> JobId:
        return dice.choice(known) if known else JobId("job_none")

    acts: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        put,
        put,
        put,
        claim,
        claim,
        give_back,
        stage,
        lambda: queue.jobs.cancel(some(), reason="stirred"),
        lambda: queue.order.before(some(), some()),
        lambda: queue.order.after(some(), some()),
        lambda: queue.order.swap(some(), some()),
        lambda: queue.order.reprioritise(some(), dice.randrange(3)),
        lambda: queue.sessions.revoke(some(), reason="stirred"),
    ]
    for _ in range(steps):
        try:
            await dice.choice(acts)()
        except (JobLocked, JobAlreadyFinished, UnknownJob):
            continue
        except (Conflict, NotFound) as refusal:
            assert refusal.code == "jobs_apart", refusal  # noqa: PT017
    await queue.sessions.close(hand.session)


@pytest.mark.req("CON-002")
async def test_a_place_freed_while_another_job_is_being_parked_is_not_missed(world: World) -> None:
    await world.pool("extra", 1)
    queues = await _queues(world, 2)
    one, two = [await world.hand(1, queue=queue) for queue in queues]
    for _ in range(30):
        first = await world.put(resources=["extra"])
        second = await world.put(resources=["extra"])
        (running,) = await one.claim()
        assert running.id == first

        _, started = await asyncio.gather(one.finish(running), two.claim())

        if not started:
            assert await world.state(second) == "ready", "parked for ever on a free resource"
            started = await two.claim()
        await two.finish(*started)


@pytest.mark.req("RISK-02")
async def test_a_worker_that_reports_while_it_is_rescued_is_heard_once_or_not_at_all(world: World) -> None:
    queues = await _queues(world, 2)
    for _ in range(25):
        job_id = await world.put(retry=NO_RETRY, lane="lane")
        hand = await world.hand(queue=queues[0])
        (job,) = await hand.claim()
        world.clock.advance(31)

        exchange, _ = await asyncio.gather(hand.finish(job), queues[1].sessions.rescue_expired())

        state = await world.state(job_id)
        assert state == ("FAILED" if exchange.stale else "COMPLETED")
        await world.queue.sessions.rescue_expired()


async def test_a_claim_and_a_cancel_at_once_agree_on_what_happened(world: World) -> None:
    queues = await _queues(world, 2)
    hand = await world.hand(queue=queues[0])
    for _ in range(40):
        job_id = await world.put()

        claimed, withdrawn = await asyncio.gather(hand.claim(), queues[1].jobs.cancel(job_id, reason="at once"))

        assert bool(claimed) is not withdrawn
        assert await world.state(job_id) == ("CANCELLED" if withdrawn else "running")
        await hand.finish(*claimed)
