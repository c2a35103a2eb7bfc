"""What becomes of a slot while another run of its schedule is in flight: every row of the table, through storage."""

import pytest

from duly import every
from duly.domain.decisions import Fate
from duly.domain.instants import moment_of
from duly.domain.jobs import COMPLETED
from duly.domain.retries import RetryPolicy
from duly.domain.runs import RunStatus
from duly.domain.schedules import Target
from duly.domain.sessions import ClaimedJob, Report
from tests.contracts.keeping import Keeping, at
from tests.contracts.world import WIDE, Hand, World

# allow


@pytest.mark.req("CRON-03")
async def test_allow_runs_beside_the_others(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    hand = await world.hand()

    for minute in (1, 2, 3):
        await keeping.at(minute)
    jobs = await hand.claim(5)

    assert [job.lane for job in jobs] == [None, None, None]
    assert await keeping.fates() == ["1: running", "2: running", "3: running"]


# skip


@pytest.mark.req("CRON-03")
@pytest.mark.req("GRAPH-14")
@pytest.mark.req("OWN-02")
@pytest.mark.parametrize("runs", [False, True])
async def test_skip_closes_a_slot_while_one_is_in_flight_and_says_which(world: World, runs: bool) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="skip")
    hand = await world.hand()
    await keeping.at(1)
    jobs = await hand.claim() if runs else []

    await keeping.at(2)
    await hand.finish(*jobs or await hand.claim())
    await keeping.at(3)

    assert await keeping.fates() == ["1: success", "2: skipped overlap", "3: pending"]
    first, second, _ = await keeping.runs()
    assert second.detail == f"{first.id} was still {'running' if runs else 'waiting'}"
    assert second.completed_at == at(2)
    assert second.job_id is None


@pytest.mark.req("OWN-02")
async def test_a_run_that_waits_for_a_full_pool_is_not_said_to_run(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="skip")
    hand = await world.hand()
    await world.pool(WIDE, 1)
    await world.put()
    await hand.claim()
    await keeping.at(1)

    await keeping.at(2)

    first, second = await keeping.runs()
    assert second.detail == f"{first.id} was still waiting for pool {WIDE!r} (1 of 1 in use)"


@pytest.mark.req("CRON-03", error=True)
async def test_skip_counts_a_retry_that_waits_for_its_time(world: World) -> None:
    keeping = Keeping(world)
    retry = RetryPolicy(max_attempts=2, backoff_ms=600_000)
    await keeping.schedule(overlap="skip", target=Target(kind="flaky", pool=WIDE, retry=retry))
    await keeping.at(1)
    hand = await world.hand()
    await hand.fail(*await hand.claim())

    await keeping.at(2)

    assert await keeping.fates() == ["1: running", "2: skipped overlap"]


@pytest.mark.req("CRON-03")
@pytest.mark.parametrize("kind", ["manual", "backfill"])
async def test_skip_counts_runs_by_hand_and_of_a_backfill(world: World, kind: str) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="skip")
    await keeping.alive_until(0.5)
    if kind == "manual":
        await keeping.schedules.run_now("s", owner="ann")
    else:
        start = end = moment_of(at(-3))
        await keeping.schedules.backfill("s", owner="ann", start=start, end=end)

    await keeping.at(1)

    assert (await keeping.fates())[-1] == "1: skipped overlap"


# queue


@pytest.mark.req("CRON-03")
@pytest.mark.req("GRAPH-09")
async def test_queue_runs_one_after_another_in_order(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")
    hand = await world.hand()
    for minute in (1, 2, 3):
        await keeping.at(minute)

    ran = []
    while jobs := await hand.claim(5):
        assert len(jobs) == 1
        ran.append(jobs[0].key)
        await hand.finish(*jobs)

    assert ran == [f"s:2027-01-15T08:0{minute}:00Z" for minute in (1, 2, 3)]
    assert await keeping.fates() == ["1: success", "2: success", "3: success"]


@pytest.mark.req("GRAPH-09", error=True)
async def test_no_worker_claims_a_second_run_of_a_schedule(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")
    await keeping.at(2)
    await keeping.schedules.run_now("s", owner="ann")

    first, second = await world.hand(), await world.hand()

    assert len(await first.claim(5)) == 1
    assert await second.claim(5) == []


# queue_one


@pytest.mark.req("GRAPH-14")
async def test_queue_one_keeps_the_one_that_waits_and_closes_the_new_slot(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue_one")
    hand = await world.hand()
    await keeping.at(1)
    (running,) = await hand.claim()

    for minute in (2, 3, 4):
        await keeping.at(minute)

    assert await keeping.fates() == ["1: running", "2: pending", "3: skipped coalesced", "4: skipped coalesced"]
    _, waiting, third, _ = await keeping.runs()
    assert third.detail == f"coalesced into {waiting.id}, which was waiting"
    await hand.finish(running)
    assert [job.key for job in await hand.claim(5)] == ["s:2027-01-15T08:02:00Z"]


# replace


@pytest.mark.req("GRAPH-14")
async def test_replace_closes_what_waits(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="replace")

    for minute in (1, 2, 3):
        await keeping.at(minute)

    assert await keeping.fates() == ["1: cancelled replaced", "2: cancelled replaced", "3: pending"]
    assert (await keeping.runs())[0].detail == "a later slot took its place"
    hand = await world.hand()
    assert [job.key for job in await hand.claim(5)] == ["s:2027-01-15T08:03:00Z"]


@pytest.mark.req("GRAPH-14")
async def test_replace_asks_the_running_one_to_stop_and_then_starts(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="replace")
    hand = await world.hand()
    await keeping.at(1)
    (running,) = await hand.claim()

    await keeping.at(2)

    beat = await world.queue.sessions.beat(hand.session)
    assert dict(beat.cancelled) == {running.id: "a later slot took its place"}
    assert await hand.claim(5) == []
    await hand.fail(running)
    assert await keeping.fates() == ["1: cancelled", "2: pending"]
    assert [job.key for job in await hand.claim(5)] == ["s:2027-01-15T08:02:00Z"]
    assert (await keeping.runs())[0].detail == "a later slot took its place"
    assert [fact.fate for fact in keeping.heard] == [Fate.OPENED, Fate.OPENED, Fate.STOPPED]


@pytest.mark.req("GRAPH-14", error=True)
async def test_a_run_that_does_not_stop_loses_its_claim_after_a_grace_and_its_lane_goes_on(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="replace", cadence=every("10s"))
    hand = await world.hand()
    await keeping.at(1 / 6)
    (running,) = await hand.claim()

    await keeping.at(2 / 6)
    await keeping.at(3 / 6)  # asked again: its time to stop does not begin anew
    await keeping.at(4 / 6)
    assert await hand.claim(5) == []
    await keeping.at(5 / 6)

    claimed = await hand.claim(5)
    assert [job.key for job in claimed] == ["s:2027-01-15T08:00:50Z"]
    assert (await keeping.runs())[0].status is RunStatus.CANCELLED
    assert await stale(hand, running) == [running.id]


async def test_a_run_that_ends_well_although_it_was_asked_to_stop_has_succeeded(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="replace")
    hand = await world.hand()
    await keeping.at(1)
    (running,) = await hand.claim()
    await keeping.at(2)

    await hand.finish(running)
    await keeping.at(2.6)

    assert await keeping.fates() == ["1: success", "2: pending"]
    assert await world.queue.timekeeping.revoke_due() == 0


async def test_replacing_ends_a_retry_that_waits_for_its_time(world: World) -> None:
    keeping = Keeping(world)
    retry = RetryPolicy(max_attempts=2, backoff_ms=600_000)
    await keeping.schedule(overlap="replace", target=Target(kind="flaky", pool=WIDE, retry=retry))
    await keeping.at(1)
    hand = await world.hand()
    await hand.fail(*await hand.claim())

    await keeping.at(2)

    assert await keeping.fates() == ["1: cancelled", "2: pending"]
    assert [job.key for job in await hand.claim(5)] == ["s:2027-01-15T08:02:00Z"]


async def test_replacing_stops_a_retry_whose_first_attempt_was_pruned(world: World) -> None:
    keeping = Keeping(world)
    retry = RetryPolicy(max_attempts=2, backoff_ms=0)
    await keeping.schedule(overlap="replace", target=Target(kind="flaky", pool=WIDE, retry=retry))
    await keeping.at(1)
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    (running,) = await hand.claim()
    world.clock.advance(1)
    assert await world.queue.jobs.prune(before=world.clock.now()) == 1

    await keeping.at(2)

    assert (await world.live(running.id)).cancel_reason == "a later slot took its place"


async def test_late_slots_that_replace_each_other_leave_the_newest(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="replace")

    await keeping.at(3)

    assert await keeping.fates() == ["1: cancelled replaced", "2: cancelled replaced", "3: pending"]
    assert await world.rows("SELECT count(*) FROM jobs") == [(1,)]


async def stale(hand: Hand, job: ClaimedJob) -> list[str]:
    return list((await hand.exchange(reports=[Report(job, COMPLETED)])).stale)
