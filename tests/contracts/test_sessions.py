"""Sessions: renewed by heartbeats; what a dead one had is found and given to others."""

import asyncio

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.domain.jobs import FinishedJob, Job, JobStatus
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import ClaimedJob, SessionLost, Wanted
from tests.contracts.world import WIDE, Hand, World, new


async def _dead_worker(world: World, *, lane: str | None = None) -> tuple[Hand, ClaimedJob, ClaimedJob]:
    """It runs one job and holds another, and its lease has run out."""
    await world.put("running", lane=lane)
    await world.put("held")
    hand = await world.hand()
    (running,) = await hand.claim()
    (held,) = await hand.hold()
    world.clock.advance(30)
    return hand, running, held


@pytest.mark.req("RISK-02")
async def test_beats_keep_a_session_alive(world: World) -> None:
    await world.put()
    hand = await world.hand()
    (job,) = await hand.claim()

    for _ in range(10):
        world.clock.advance(29)
        await world.queue.sessions.beat(hand.session)
        assert await world.queue.sessions.rescue_expired() == []

    assert (await hand.finish(job)).stale == []
    assert (await world.ended(job.id)).status is JobStatus.COMPLETED


@pytest.mark.req("RISK-02")
async def test_a_lease_runs_out_exactly_when_it_says(world: World) -> None:
    hand = await world.hand()

    world.clock.advance(micros=29_999_999)
    assert await world.queue.sessions.rescue_expired() == []
    world.clock.advance(micros=1)
    (rescue,) = await world.queue.sessions.rescue_expired()

    assert (rescue.session, rescue.ended) == (hand.session, True)


@pytest.mark.req("RISK-02")
@pytest.mark.req("DEC-008")
async def test_what_a_dead_worker_had_is_recovered(world: World) -> None:
    _, running, held = await _dead_worker(world, lane="lane")

    (rescue,) = await world.queue.sessions.rescue_expired()

    failed, retry = await world.queue.jobs.chain(running.id)
    assert (rescue.returned, rescue.failed, rescue.ended) == (1, 1, True)
    assert isinstance(failed, FinishedJob)
    assert (failed.status, failed.error) == (
        JobStatus.FAILED,
        "worker lost: its session ended while this job was running",
    )
    assert isinstance(retry, Job)
    assert (retry.state, retry.attempt, retry.retry_of, retry.lane) == ("backoff", 2, running.id, "lane")
    assert (await world.state(held.id), (await world.live(held.id)).attempt) == ("ready", 1)
    assert await world.used() == 0
    assert await world.queue.sessions.rescue_expired() == []


@pytest.mark.req("DEC-008")
async def test_a_run_of_a_dead_worker_is_not_tried_again_against_its_policy(world: World) -> None:
    job = await world.put(retry=NO_RETRY, lane="lane")
    behind = await world.put("behind", lane="lane")
    hand = await world.hand()
    await hand.claim()
    world.clock.advance(30)

    await world.queue.sessions.rescue_expired()

    assert [await world.state(name) for name in (job, behind)] == ["FAILED", "ready"]


@pytest.mark.req("DEC-008")
async def test_queued_jobs_and_their_order_survive_a_restart_and_a_running_one_fails(world: World) -> None:
    for n in range(5):
        await world.put(f"n{n}", priority=n % 2)
    scheduled = await world.put("later", run_at=world.clock.now() + 60_000_000)
    hand = await world.hand()
    (running,) = await hand.claim()

    await world.reopen()
    world.clock.advance(30)
    await world.queue.sessions.rescue_expired()

    assert await world.kinds() == ["n3", "n0", "n2", "n4"]
    assert await world.state(running.id) == "FAILED"
    assert await world.state(scheduled) == "scheduled"


@pytest.mark.req("RISK-02", error=True)
async def test_a_late_worker_cannot_finish_a_rescued_job(world: World) -> None:
    hand, running, held = await _dead_worker(world)
    await world.queue.sessions.rescue_expired()
    before = await world.snapshot()

    late = await hand.finish(running)
    started = await hand.exchange(starting=[held])

    assert list(late.stale) == [running.id]
    assert list(started.started) == []
    assert await world.snapshot() == before


@pytest.mark.req("RISK-02", error=True)
async def test_a_rescued_session_can_neither_beat_nor_claim(world: World) -> None:
    hand, _, _ = await _dead_worker(world)
    await world.queue.sessions.rescue_expired()
    before = await world.snapshot()

    with pytest.raises(SessionLost) as lost:
        await world.queue.sessions.beat(hand.session)
    assert lost.value.session == hand.session
    for wanted in (Wanted(1), Wanted(0, 1), Wanted(1, 1)):
        with pytest.raises(SessionLost):
            await hand.exchange(wanted={WIDE: wanted})
    with pytest.raises(SessionLost):
        await world.queue.tickets.request(WIDE, session=hand.session, wait=Micros(1))

    assert await world.snapshot() == before


@pytest.mark.req("RISK-02")
async def test_a_late_beat_that_comes_before_any_rescue_saves_the_session(world: World) -> None:
    hand, running, _ = await _dead_worker(world)

    await world.queue.sessions.beat(hand.session)

    assert await world.queue.sessions.rescue_expired() == []
    assert list((await hand.finish(running)).stale) == []


@pytest.mark.req("RISK-02")
async def test_a_session_of_another_boot_is_rescued_at_once(world: World) -> None:
    await world.put()
    hand = await world.hand()
    (job,) = await hand.claim()
    world.clock.reboot("next-boot")

    (rescue,) = await world.queue.sessions.rescue_expired()

    assert (rescue.session, rescue.failed) == (hand.session, 1)
    assert await world.state(job.id) == "FAILED"


@pytest.mark.req("RISK-02")
@pytest.mark.parametrize("step", [3_600, -3_600, 30 * 86_400])
async def test_a_stepped_time_of_day_rescues_nothing(world: World, step: float) -> None:
    """On Postgres the store's clock hides the step; on SQLite leases run on another clock."""
    await world.put()
    hand = await world.hand()
    (job,) = await hand.claim()

    world.clock.step(step)

    assert await world.queue.sessions.rescue_expired() == []
    world.clock.advance(29)
    await world.queue.sessions.beat(hand.session)
    assert await world.queue.sessions.rescue_expired() == []
    assert list((await hand.finish(job)).stale) == []


@pytest.mark.req("RISK-02")
async def test_two_rescuers_at_once_recover_everything_once(world: World) -> None:
    dead = [await world.hand() for _ in range(6)]
    for n, hand in enumerate(dead):
        await world.put(f"running{n}", lane=f"lane {n}")
        await world.put(f"held{n}")
        await hand.claim()
        await hand.hold()
    world.clock.advance(31)
    others = [world.queue, await world.another(), await world.another()]

    rescues = await asyncio.gather(*(queue.sessions.rescue_expired() for queue in others))

    flat = [rescue for found in rescues for rescue in found]
    assert sorted(rescue.session for rescue in flat if rescue.ended) == sorted(hand.session for hand in dead)
    assert (sum(rescue.failed for rescue in flat), sum(rescue.returned for rescue in flat)) == (6, 6)
    assert await world.rows("SELECT count(*) FROM jobs WHERE state = 'backoff'") == [(6,)]
    assert await world.rows("SELECT count(*) FROM sessions") == [(0,)]


@pytest.mark.req("RISK-02")
async def test_two_thousand_stranded_jobs_are_recovered_in_batches(world: World) -> None:
    await world.pool("huge", 3_000)
    huge = PoolName("huge")
    await world.queue.jobs.put_many([new(f"n{n}", pool=huge) for n in range(2_000)])
    hand = await world.hand(2_000)
    exchange = await hand.exchange(wanted={huge: Wanted(1_000, 1_000)})
    assert (len(exchange.started), len(exchange.held)) == (1_000, 1_000)
    world.clock.advance(31)

    rescues = await world.queue.sessions.rescue_expired()

    assert len(rescues) == 5
    assert [rescue.ended for rescue in rescues] == [False] * 4 + [True]
    assert sum(rescue.failed for rescue in rescues) == 1_000
    assert sum(rescue.returned for rescue in rescues) == 1_000
    assert await world.used(huge) == 0
    kinds = await world.kinds(huge)
    assert kinds == [f"n{n}" for n in range(1_000, 2_000)]


@pytest.mark.req("RISK-02")
async def test_closing_a_session_gives_back_what_it_held_and_fails_what_it_ran(world: World) -> None:
    await world.put("running")
    await world.put("held")
    hand = await world.hand()
    (running,) = await hand.claim()
    (held,) = await hand.hold()

    await world.queue.sessions.close(hand.session)
    await world.queue.sessions.close(hand.session)

    assert [await world.state(job.id) for job in (running, held)] == ["FAILED", "ready"]
    with pytest.raises(SessionLost):
        await world.queue.sessions.beat(hand.session)


@pytest.mark.req("RISK-02")
async def test_places_that_were_miscounted_are_counted_anew_at_a_rescue(world: World) -> None:
    await world.put()
    hand = await world.hand()
    await hand.claim()

    async def miscount(tx: object) -> None:
        executor = tx.jobs._x  # type: ignore[attr-defined]
        await executor.fetch("count_held", name=WIDE, change=7)

    await world.queue.storage.transact(miscount)
    assert await world.used() == 8
    world.clock.advance(31)

    await world.queue.sessions.rescue_expired()

    assert await world.used() == 0


@pytest.mark.req("RISK-02")
async def test_jobs_of_a_session_that_is_gone_are_found_too(world: World) -> None:
    """It should never happen; were it to, nobody else would ever look for them."""
    await world.put()
    hand = await world.hand()
    (job,) = await hand.claim()

    async def lose(tx: object) -> None:
        await tx.jobs._x.fetch("close_session", id=hand.session)  # type: ignore[attr-defined]

    await world.queue.storage.transact(lose)
    await world.queue.sessions.rescue_expired()

    assert await world.state(job.id) == "FAILED"


# What a beat tells.


async def test_a_beat_tells_what_is_due_what_expires_and_where_work_is(world: World) -> None:
    await world.pool("full", 1)
    await world.put(pool="full")
    await world.put(pool="full")
    await world.put(pool="default")
    due = world.clock.now() + 5_000_000
    await world.put(run_at=due)
    short = await world.hand(lease=Micros(2_000_000))
    hand = await world.hand()
    await hand.claim(1, PoolName("full"))

    beat = await world.queue.sessions.beat(hand.session)

    assert beat.pools_with_work == {"default"}
    assert beat.next_due_at == due
    assert beat.next_expiry == world.clock.lease_now() + 2_000_000
    assert beat.cancelled == {}
    assert short.session != hand.session


@pytest.mark.req("INV-003", error=True)
async def test_a_session_without_sense_is_refused(world: World) -> None:
    for bad in ({"capacity": 0}, {"capacity": 10_001}, {"capacity": 1.0}, {"lease": 99_999}, {"name": ""}):
        with pytest.raises(InvalidInput):
            await world.queue.sessions.open(**{"name": "fine", **bad})  # type: ignore[arg-type]

    assert await world.rows("SELECT id FROM sessions") == []
