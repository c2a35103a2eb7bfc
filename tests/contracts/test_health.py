"""Readiness and census, of stores that are empty, well, late and left alone."""

from duly.domain.health import Census, Readiness
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND
from duly.domain.jobs import JobState
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, World


async def test_an_empty_store_is_ready_and_holds_nothing(world: World) -> None:
    assert await world.queue.health.readiness() == Readiness(is_ready=True)
    census = await world.queue.health.census()

    assert (census.schedules, census.jobs, census.runs_in_flight, census.sessions) == ({}, {}, 0, 0)
    assert census.oldest_ready_at is None
    assert WIDE in {pool.name for pool in census.pools}


async def test_a_store_whose_time_is_kept_is_ready(world: World) -> None:
    keeping = Keeping(world)
    schedule = await keeping.schedule()
    await keeping.at(0.5)

    readiness = await world.queue.health.readiness()

    assert readiness == Readiness(is_ready=True, alive_at=world.clock.now(), next_fire_at=schedule.fire_at)


async def test_a_timekeeper_may_be_silent_for_fifteen_seconds(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.at(0.5)
    world.clock.advance(15)
    assert (await world.queue.health.readiness()).is_ready

    world.clock.advance(micros=1)
    readiness = await world.queue.health.readiness()

    assert not readiness.is_ready
    assert readiness.problems == ("no timekeeper has been alive since 2027-01-15T08:00:30Z",)


async def test_without_a_timekeeper_schedules_make_a_store_unready_and_paused_ones_do_not(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await world.rows("DELETE FROM coverage")
    assert (await world.queue.health.readiness()).problems == ("no timekeeper was ever alive",)

    await keeping.schedules.pause("s", owner="ann")

    assert (await world.queue.health.readiness()).is_ready


async def test_slots_that_nobody_opens_are_overdue_after_five_seconds(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule("a")
    await keeping.schedule("b")
    await keeping.alive_until(1)
    world.clock.advance(5)
    assert (await world.queue.health.readiness()).is_ready

    world.clock.advance(micros=1)
    readiness = await world.queue.health.readiness()

    assert (readiness.is_ready, readiness.overdue) == (False, 2)
    assert readiness.problems == ("2 schedules are overdue by more than 5 s",)
    assert readiness.longest_overdue == ("a", "b")
    await keeping.tick()
    assert (await world.queue.health.readiness()).is_ready


async def test_a_census_counts_schedules_jobs_runs_and_sessions(world: World) -> None:
    keeping = Keeping(world)
    for name in ("active", "busy", "paused", "deleted"):
        await keeping.schedule(name)
    await keeping.schedules.pause("paused", owner="ann")
    await keeping.schedules.delete("deleted", owner="ann")
    await keeping.at(1)
    await world.pool("other", 1)
    await world.put(pool="other", lane="lane")
    await world.put(pool="other", lane="lane")
    later = world.clock.now() + 60 * SECOND
    await world.put(run_at=later)
    hand = await world.hand()
    await hand.claim(1)
    await hand.hold(1)

    census = await world.queue.health.census()

    other = PoolName("other")
    assert census == Census(
        schedules={"active": 2, "paused": 1, "deleted": 1},
        jobs={
            (other, JobState.READY): 1,
            (other, JobState.WAITING): 1,
            (WIDE, JobState.SCHEDULED): 1,
            (WIDE, JobState.RUNNING): 1,
            (WIDE, JobState.CLAIMED): 1,
        },
        runs_in_flight=2,
        sessions=1,
        pools=await world.queue.pools.all(),
        oldest_ready_at=world.clock.now(),
    )


async def test_the_oldest_ready_job_is_the_one_that_was_due_first_not_the_one_that_was_put_first(world: World) -> None:
    due = world.clock.now() + 60 * SECOND
    await world.put(run_at=due)
    world.clock.advance(90)
    await world.queue.jobs.stage()
    await world.put()

    assert (await world.queue.health.census()).oldest_ready_at == due
