"""Extra resources: all of them or none; a job that lacks one is parked on it, and is found again."""

import asyncio

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import Micros
from duly.domain.jobs import COMPLETED
from duly.domain.sessions import ClaimedJob, Report, Wanted
from duly.domain.tickets import TicketState
from tests.contracts.world import WIDE, Hand, World, new

OLLAMA = PoolName("ollama")
_HOUR = Micros(3_600_000_000)


async def _parked(world: World, count: int = 1) -> tuple[Hand, list[JobId]]:
    """One job has the only place of ollama; `count` more are parked on it."""
    jobs = [await world.put(f"n{n}", resources=["ollama"]) for n in range(count + 1)]
    hand = await world.hand()
    await hand.claim(count + 1)
    assert [await world.state(job) for job in jobs] == ["running", *["parked"] * count]
    return hand, jobs


@pytest.mark.req("CON-002")
async def test_a_resource_runs_no_more_jobs_than_its_limit(world: World) -> None:
    hand, (first, second) = await _parked(world)

    assert await world.used(OLLAMA) == 1
    assert await world.used() == 1, "a parked job uses nothing"
    assert (await world.live(second)).session is None

    await _finish(world, hand, first)

    assert await world.used(OLLAMA) == 0
    assert await world.state(second) == "ready"
    assert [job.id for job in await hand.claim()] == [second]


@pytest.mark.req("CON-002")
async def test_a_parked_job_leaves_its_turn_to_the_next_at_once(world: World) -> None:
    await world.pool("one", 4)
    one = PoolName("one")
    holder = await world.put("holder", resources=["ollama"])
    hand = await world.hand()
    await hand.claim()
    for n in range(3):
        await world.put(f"needs{n}", pool=one, resources=["ollama"])
    await world.put("free", pool=one)

    claimed = await hand.claim(1, one)

    assert [job.kind for job in claimed] == ["free"]
    assert await world.state(holder) == "running"


@pytest.mark.req("CON-002")
async def test_a_report_and_a_claim_in_one_exchange_pass_the_resource_on(world: World) -> None:
    hand, (first, second) = await _parked(world)
    claim = await _claim_of(world, first)

    exchange = await hand.exchange(reports=[Report(claim, COMPLETED)], wanted={WIDE: Wanted(1)})

    assert [job.id for job in exchange.started] == [second]
    assert await world.used(OLLAMA) == 1


@pytest.mark.req("CON-002")
async def test_resources_are_taken_all_or_none_and_in_the_order_of_their_names(world: World) -> None:
    await world.pool("a-gpu", 2)
    await world.pool("z-gpu", 1)
    await world.put("holder", resources=["z-gpu"])
    needing = await world.put("needing", resources=["z-gpu", "a-gpu"])
    hand = await world.hand()
    await hand.claim(2)

    assert (await world.live(needing)).resources == ("a-gpu", "z-gpu")
    assert await world.rows("SELECT parked_on FROM jobs WHERE state = 'parked'") == [("z-gpu",)]
    assert await world.used(PoolName("a-gpu")) == 0, "what was taken on the way is given back"


@pytest.mark.req("CON-002")
async def test_a_resource_named_as_the_pool_or_twice_counts_once(world: World) -> None:
    await world.put("one", pool="ollama", resources=["ollama", "graphs", "graphs"])
    hand = await world.hand()

    (claimed,) = await hand.claim(1, OLLAMA)

    assert (await world.used(OLLAMA), await world.used(PoolName("graphs"))) == (1, 1)
    await hand.finish(claimed)
    assert (await world.used(OLLAMA), await world.used(PoolName("graphs"))) == (0, 0)


@pytest.mark.req("CON-002")
async def test_raising_the_limit_frees_parked_jobs(world: World) -> None:
    hand, (_, second, third, fourth) = await _parked(world, 3)

    await world.pool("ollama", 3)

    assert [await world.state(job) for job in (second, third, fourth)] == ["ready", "ready", "parked"]
    assert [job.id for job in await hand.claim(5)] == [second, third]


@pytest.mark.req("CON-002")
async def test_opening_a_paused_resource_frees_parked_jobs(world: World) -> None:
    await world.queue.pools.pause(OLLAMA)
    job = await world.put(resources=["ollama"])
    hand = await world.hand()
    assert await hand.claim() == []
    assert await world.state(job) == "parked"

    await world.queue.pools.open(OLLAMA)

    assert [claimed.id for claimed in await hand.claim()] == [job]


@pytest.mark.req("CON-002")
async def test_a_parked_job_can_be_cancelled(world: World) -> None:
    hand, (first, second, third) = await _parked(world, 2)

    await world.queue.jobs.cancel(second, reason="not needed")
    await _finish(world, hand, first)

    assert [await world.state(job) for job in (second, third)] == ["CANCELLED", "ready"]


@pytest.mark.req("CON-002")
async def test_a_parked_job_can_be_replaced_by_one_that_needs_nothing(world: World) -> None:
    await world.put("holder", resources=["ollama"])
    hand = await world.hand()
    parked = await world.put("parked", key="k", resources=["ollama"])
    await hand.claim(2)
    assert await world.state(parked) == "parked"

    await world.puts("simple", key="k")

    assert await world.state(parked) == "ready"
    assert [job.kind for job in await hand.claim()] == ["simple"]


@pytest.mark.req("CON-002")
@pytest.mark.parametrize("how", ["cancel", "replace", "pause"])
async def test_a_job_that_was_freed_and_then_went_away_does_not_strand_those_behind_it(world: World, how: str) -> None:
    """The freed place was meant for it; the next heartbeat offers the place to the next."""
    await world.pool("own", 5)
    await world.put("holder", resources=["ollama"])
    hand = await world.hand()
    (holder,) = await hand.claim()
    chosen = await world.put("chosen", pool="own", key="k", resources=["ollama"])
    await hand.claim(1, PoolName("own"))
    behind = await world.put("behind", resources=["ollama"])
    await hand.claim()
    await hand.finish(holder)
    assert [await world.state(job) for job in (chosen, behind)] == ["ready", "parked"]

    if how == "cancel":
        await world.queue.jobs.cancel(chosen, reason="not needed")
    elif how == "replace":
        await world.puts("simple", key="k", pool="own")
    else:
        await world.queue.pools.pause(PoolName("own"))
    beat = await world.queue.sessions.beat(hand.session)

    assert WIDE in beat.pools_with_work
    assert [job.id for job in await hand.claim()] == [behind]


@pytest.mark.req("CON-002")
async def test_a_waiting_ticket_that_goes_away_frees_a_parked_job(world: World) -> None:
    hand = await world.hand()
    tickets = world.queue.tickets
    held = await tickets.request(OLLAMA, session=hand.session, wait=_HOUR)
    waiting = await tickets.request(OLLAMA, session=hand.session, wait=_HOUR)
    job = await world.put(resources=["ollama"])
    await hand.claim()
    await tickets.release(held.id)
    assert (await world.state(job), waiting.state) == ("parked", TicketState.WAITING)

    await tickets.release(waiting.id)

    assert await world.state(job) == "ready"


@pytest.mark.req("CON-002")
async def test_a_parked_head_lets_a_better_job_of_its_lane_go_first(world: World) -> None:
    await world.put("holder", resources=["ollama"])
    hand = await world.hand()
    await hand.claim()
    needing = await world.put("needing", lane="lane", resources=["ollama"])
    held = await hand.hold()
    better = await world.put("better", lane="lane", priority=5)

    await hand.exchange(starting=held)

    assert await world.state(needing) == "waiting"
    assert await world.state(better) == "ready"


@pytest.mark.req("CON-002")
async def test_places_are_counted_right_whatever_a_name_looks_like(world: World) -> None:
    """An underscore in a pool's name is a letter, not a pattern."""
    await world.pool("gpu_1", 1)
    await world.pool("gpu-1", 1)
    await world.pool("gpu", 1)
    await world.put(resources=["gpu-1"])
    hand = await world.hand()
    await hand.claim()

    await world.queue.storage.transact(lambda tx: tx.sessions.recount())

    assert [await world.used(PoolName(name)) for name in ("gpu_1", "gpu-1", "gpu")] == [0, 1, 0]


@pytest.mark.req("CON-002")
async def test_resources_hold_under_many_hands_and_none_is_stranded(world: World) -> None:
    await world.pool("r-one", 1)
    await world.pool("r-two", 2)
    needs = [["r-one"], ["r-two"], ["r-one", "r-two"], []]
    count = 80
    await world.queue.jobs.put_many([new(f"n{n}", resources=needs[n % 4]) for n in range(count)])
    queues = [world.queue, await world.another()]
    hands = [await world.hand(3, queue=queues[n % 2]) for n in range(6)]
    running = {"r-one": 0, "r-two": 0}
    ran: list[str] = []

    async def work(hand: Hand) -> None:
        idle = 0
        while len(ran) < count and idle < 400:
            claimed = (await hand.exchange(wanted={WIDE: Wanted(2)})).started
            names = [name for job in claimed for name in (job.resources or "").split(",") if name]
            for name in names:
                running[name] += 1
                assert running[name] <= {"r-one": 1, "r-two": 2}[name]
            await asyncio.sleep(0)
            for name in names:
                running[name] -= 1
            ran.extend(job.kind for job in claimed)
            if claimed:
                await hand.finish(*claimed)
            else:
                idle += 1

    await asyncio.gather(*(work(hand) for hand in hands))

    assert sorted(ran) == sorted(f"n{n}" for n in range(count))
    assert [await world.used(PoolName(name)) for name in ("r-one", "r-two", WIDE)] == [0, 0, 0]


@pytest.mark.req("CON-002", error=True)
@pytest.mark.parametrize("full", [False, True])
async def test_a_lost_claim_neither_takes_a_resource_nor_parks_the_job_of_another(world: World, full: bool) -> None:
    """A worker that was rescued still tries to start what it held."""
    await world.pool("gpu", 1 if full else 5)
    job = await world.put(resources=["gpu"])
    late = await world.hand()
    held = await late.hold()
    world.clock.advance(31)
    await world.queue.sessions.rescue_expired()
    other = await world.hand()
    (running,) = await other.claim()
    before = await world.snapshot()

    exchange = await late.exchange(starting=held)

    assert (running.id, exchange.started) == (job, [])
    assert await world.snapshot() == before


@pytest.mark.req("CON-002", error=True)
async def test_more_resources_than_a_job_may_name_are_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="at most 8"):
        await world.put(resources=[f"r{n}" for n in range(9)])


async def _claim_of(world: World, job: JobId) -> ClaimedJob:
    live = await world.live(job)
    assert live.token is not None
    return ClaimedJob(
        id=live.id,
        kind=live.kind,
        payload=live.payload,
        key=live.key,
        lane=live.lane,
        pool=live.pool,
        resources=",".join(live.resources) or None,
        attempt=live.attempt,
        max_attempts=live.retry.max_attempts,
        run_at=live.run_at,
        created_at=live.created_at,
        timeout_ms=live.timeout_ms,
        chain=live.chain,
        token=live.token,
        state=live.state,
        rank=live.rank,
        position=live.position,
    )


async def _finish(world: World, hand: Hand, job: JobId) -> None:
    assert (await hand.finish(await _claim_of(world, job))).stale == []
