"""Slots become runs, on time or late, each once, whatever happens to those who keep the time."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import Unavailable, cron, every, once
from duly.domain.decisions import Fate
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.jobs import JobStatus
from duly.domain.policies import Policies
from duly.domain.retries import RetryPolicy
from duly.domain.runs import Run
from duly.domain.schedules import Schedule, ScheduleState, Target
from duly.storage.sql.ledger import SqlLedger
from duly.storage.sql.schedules import SqlSchedules
from tests.contracts.clocks import MORNING
from tests.contracts.keeping import Keeping, at
from tests.contracts.points import stop_after
from tests.contracts.world import WIDE, World

# A slot and its run


@pytest.mark.req("GRAPH-07")
@pytest.mark.req("GRAPH-19")
async def test_a_slot_that_fires_becomes_one_run_and_one_job(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    await keeping.at(1)

    assert await keeping.fates() == ["1: pending"]
    hand = await world.hand()
    (job,) = await hand.claim()
    assert (job.kind, job.key, job.lane) == ("s", "s:2027-01-15T08:01:00Z", "schedule:s")
    assert await keeping.fates() == ["1: running"]
    await hand.finish(job)
    assert await keeping.fates() == ["1: success"]


async def test_a_job_is_what_its_schedules_target_was(world: World) -> None:
    keeping = Keeping(world)
    retry = RetryPolicy(max_attempts=4, backoff_ms=7, backoff_cap_ms=8)
    await keeping.schedule(
        target=Target(kind="report", params={"of": "today"}, pool=WIDE, priority=3, retry=retry, timeout_ms=900)
    )

    await keeping.at(1)

    (run,) = await keeping.runs()
    assert run.job_id is not None
    job = await world.live(run.job_id)
    assert (job.kind, job.payload, job.pool, job.priority) == ("report", '{"of":"today"}', WIDE, 3)
    assert (job.retry, job.timeout_ms, job.ledger_run) == (retry, 900, run.id)


@pytest.mark.req("GRAPH-08")
async def test_a_slot_and_its_successor_are_recorded_together_whatever_becomes_of_the_run(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")

    for minute in (1, 2, 3):
        await keeping.at(minute)
        schedule = await keeping.get()
        assert (schedule.opened_through, schedule.next_slot) == (at(minute) // SECOND, at(minute + 1) // SECOND)
        assert schedule.last_run_at == at(minute)

    assert await keeping.fates() == ["1: pending", "2: pending", "3: pending"]


@pytest.mark.req("GRAPH-08", error=True)
async def test_an_opening_that_fails_leaves_nothing_and_is_made_up_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    async def lost(self: SqlSchedules, schedules: object) -> None:
        raise Unavailable("as the last statement was sent")

    with monkeypatch.context() as patch:
        patch.setattr(SqlSchedules, "advance", lost)
        with pytest.raises(Unavailable):
            await keeping.at(1)
    assert await keeping.fates() == []
    assert await world.rows("SELECT id FROM jobs") == []

    await keeping.tick()

    assert await keeping.fates() == ["1: pending"]


@pytest.mark.req("CRON-06")
@pytest.mark.req("GRAPH-07")
async def test_nothing_opens_twice_however_often_it_is_looked_for(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(2)

    await keeping.tick()
    await Keeping(world, await world.another()).tick()
    world.clock.step(-90)
    await keeping.tick()
    await keeping.at(2)

    assert await keeping.fates() == ["1: pending", "2: pending"]


@pytest.mark.req("CRON-06", error=True)
async def test_a_slot_that_has_its_row_is_not_launched_again_even_if_its_schedule_forgot_it(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(1)
    hand = await world.hand()
    await hand.finish(*await hand.claim(5))

    await world.rows(f"UPDATE schedules SET opened_through = {at(0)}, next_run_at = {at(1)}, fire_at = {at(1)}")
    await keeping.tick()

    assert await keeping.fates() == ["1: success"]
    assert await hand.claim(5) == []


@pytest.mark.req("GRAPH-07", error=True)
async def test_a_job_that_somebody_put_under_a_slots_key_does_not_leave_its_row_waiting(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    job_id = await world.put("theirs", key="s:2027-01-15T08:01:00Z")
    (held,) = await (await world.hand()).claim()

    await keeping.at(1)

    (run,) = await keeping.runs()
    assert (run.status, run.reason, run.error_message) == ("error", "launch", f"job {job_id} has the key of this slot")
    assert held.id == job_id


@pytest.mark.req("GRAPH-07", error=True)
async def test_a_slot_does_not_take_the_place_of_a_job_that_somebody_put_under_its_key(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    job_id = await world.put("theirs", key="s:2027-01-15T08:01:00Z")

    await keeping.at(1)

    assert await keeping.fates() == ["1: error launch"]
    assert (await world.live(job_id)).kind == "theirs"
    assert await (await world.hand()).work_off() == ["theirs"]


@pytest.mark.req("CRON-02")
async def test_bounds_are_inclusive_and_a_single_instant_fires_once(world: World) -> None:
    keeping = Keeping(world)
    start, end = moment_of(at(2)), moment_of(at(4))
    await keeping.schedule("bounded", cadence=every("1m").within(start_at=start, end_at=end), overlap="queue")
    await keeping.schedule("single", cadence=once(end))

    await keeping.at(9)

    assert await keeping.fates("bounded") == ["2: pending", "3: pending", "4: pending"]
    assert await keeping.fates("single") == ["4: pending"]
    assert (await keeping.get("single")).next_slot is None


# On time, late, missed


@pytest.mark.req("OWN-06")
async def test_slots_that_are_late_all_fire(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")

    await keeping.at(5)

    assert await keeping.fates() == [f"{n}: pending" for n in (1, 2, 3, 4, 5)]
    assert await keeping.missed() == []


@pytest.mark.req("OWN-06", error=True)
async def test_a_crowd_of_late_slots_is_opened_in_parts_and_none_is_dropped(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=every("1s"), overlap="queue")

    await keeping.at(4)

    assert len(await keeping.runs()) == 240


@pytest.mark.req("OWN-06")
async def test_a_restart_within_a_minute_drops_nothing(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=every("10s"), overlap="queue")
    await keeping.at(0.5)

    await keeping.outage_until(1.5)
    await world.reopen()
    keeping = Keeping(world)
    await keeping.tick()

    assert len(await keeping.runs()) == 9
    assert await keeping.missed() == []


@pytest.mark.req("GRAPH-10")
@pytest.mark.req("RISK-04")
async def test_slots_missed_in_an_outage_are_a_gap_and_one_slot_is_to_come(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.at(1)

    await keeping.outage_until(60.5)
    await keeping.tick()

    assert await keeping.fates() == ["1: pending"]
    assert await keeping.missed() == [(2, 60, 59, "outage")]
    assert (await keeping.get()).next_slot == at(61) // SECOND
    assert keeping.tally.slots_missed == 59
    assert [(fact.fate, fact.count, fact.reason) for fact in keeping.heard[-1:]] == [(Fate.MISSED, 59, "outage")]
    assert keeping.heard[-1].late == 3_510 * SECOND


@pytest.mark.req("GRAPH-10", error=True)
async def test_a_schedule_that_nobody_kept_time_for_since_it_was_made_has_missed_not_late_slots(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    await keeping.outage_until(10.5)
    await keeping.tick()

    assert await keeping.fates() == []
    assert await keeping.missed() == [(1, 10, 10, "outage")]


async def test_after_a_months_outage_the_next_slot_is_in_time_and_the_gap_is_one_row(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    month = 30 * 24 * 60

    await keeping.outage_until(month)
    await keeping.tick()

    assert await keeping.fates() == [f"{month}: pending"]
    assert await keeping.missed() == [(1, month - 1, month - 1, "outage")]


async def test_a_clock_that_is_set_forward_is_an_outage(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(1)

    world.clock.step(3600)
    await keeping.tick()

    assert await keeping.fates() == ["1: pending", "61: pending"]
    assert await keeping.missed() == [(2, 60, 59, "outage")]


# Jitter


@pytest.mark.req("CRON-05")
async def test_a_slot_fires_when_jitter_says_and_is_planned_for_its_own_instant(world: World) -> None:
    keeping = Keeping(world)
    early = late = None
    for n in range(40):
        schedule = await keeping.schedule(f"s{n}", cadence=every("1h"), jitter_ms=60_000)
        assert schedule.fire_at is not None
        assert schedule.next_slot == at(60) // SECOND
        if schedule.fire_at < at(60) - SECOND:
            early = schedule
        if schedule.fire_at > at(60) + SECOND:
            late = schedule
    assert early is not None
    assert late is not None

    await keeping.at(60)

    assert await keeping.fates(early.id) == ["60: pending"]
    assert await keeping.fates(late.id) == []
    await keeping.at(61)
    (run,) = await keeping.runs(late.id)
    assert (run.scheduled_for, run.fire_at) == (at(60), late.fire_at)


# What goes wrong


@pytest.mark.req("CRON-05", error=True)
async def test_a_slot_that_was_planned_after_an_outage_was_not_missed_in_it(world: World) -> None:
    """Jitter would have let some of them fire before the revision that plans them was made."""
    keeping = Keeping(world)
    names = [f"s{number}" for number in range(20)]
    for name in names:
        await keeping.schedule(name, cadence=every("1h"))
        await keeping.schedules.pause(name, owner=None)
    await keeping.at(10)
    await keeping.outage_until(40)
    await keeping.tick()

    for name in names:
        await keeping.schedules.edit(name, owner=None, policies=Policies(jitter_ms=30 * 60_000))
        await keeping.schedules.resume(name, owner=None)
    await keeping.at(90)

    assert {tuple(await keeping.fates(name)) for name in names} == {("60: pending",)}
    assert [await keeping.missed(name) for name in names] == [[]] * len(names)


@pytest.mark.req("CRON-11", error=True)
async def test_a_schedule_that_cannot_be_evaluated_breaks_alone(world: World) -> None:
    keeping = Keeping(world)
    for name in ("a", "b", "c"):
        await keeping.schedule(name, cadence=cron("* * * * *", "Europe/Berlin"))
    await world.rows("UPDATE schedules SET timezone = 'Mars/Olympus' WHERE id = 'b'")

    await keeping.at(1)

    assert [await keeping.fates(name) for name in ("a", "b", "c")] == [["1: pending"], [], ["1: pending"]]
    broken = await keeping.get("b")
    assert (broken.state, broken.revision, broken.next_slot) == (ScheduleState.BROKEN, 2, None)
    assert "Mars/Olympus" in (broken.state_reason or "")
    assert keeping.tally.schedules_broken == 1

    mended = await keeping.schedules.edit("b", owner="ann", cadence=cron("* * * * *"))
    await keeping.at(2)

    assert (mended.state, mended.state_reason) == (ScheduleState.ACTIVE, None)
    assert await keeping.fates("b") == ["2: pending"]


async def test_a_schedule_whose_rows_cannot_be_written_breaks_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(world)
    for name in ("a", "b", "c"):
        await keeping.schedule(name)
    add = SqlLedger.add

    async def refusing(self: SqlLedger, runs: Sequence[Run]) -> set[Any]:
        if any(run.schedule_id == "b" for run in runs):
            raise ValueError("this row is cursed")
        return set(await add(self, runs))

    monkeypatch.setattr(SqlLedger, "add", refusing)
    await keeping.at(1)
    await keeping.at(2)

    assert await keeping.fates("a") == await keeping.fates("c") == ["1: pending", "2: skipped overlap"]
    broken = await keeping.get("b")
    assert (broken.state, broken.state_reason) == (ScheduleState.BROKEN, "ValueError: this row is cursed")


async def test_where_what_is_due_cannot_be_read_it_is_not_asked_for_without_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    asked: list[Instant] = []

    async def refusing(self: SqlSchedules, now: Instant, most: int) -> list[Schedule]:
        asked.append(now)
        if len(asked) > 10:
            raise Unavailable("asked without end")
        raise ValueError("permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(SqlSchedules, "due", refusing)
        await keeping.at(1)

    assert len(asked) == 1


async def test_where_nothing_can_be_written_nobody_is_broken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = Keeping(world)
    for name in ("a", "b"):
        await keeping.schedule(name)

    async def refusing(self: SqlLedger, runs: Sequence[Run]) -> set[Any]:
        raise ValueError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(SqlLedger, "add", refusing)
        await keeping.at(1)
    assert (
        keeping.tally.last_failure
        == "open: OpeningFailed: slots of 2 schedules could not be written: ValueError: a bug"
    )
    await keeping.at(1.2)

    assert await keeping.fates("a") == await keeping.fates("b") == ["1: pending"]


@pytest.mark.req("CRON-07")
@pytest.mark.parametrize("mode", ["draining", "gone"])
async def test_a_slot_that_no_pool_takes_fails_and_the_next_is_unaffected(world: World, mode: str) -> None:
    keeping = Keeping(world)
    pool = PoolName("narrow")
    await world.pool(pool, 1)
    await keeping.schedule("lost", target=Target(kind="lost", pool=pool))
    await keeping.schedule("found")
    if mode == "gone":
        await world.queue.pools.remove(pool)
    else:
        await world.queue.pools.drain(pool)

    await keeping.at(1)
    await (world.pool(pool, 1) if mode == "gone" else world.queue.pools.open(pool))
    await keeping.at(2)

    assert await keeping.fates("found") == ["1: pending", "2: skipped overlap"]
    assert await keeping.fates("lost") == ["1: error launch", "2: pending"]
    (failed, _) = await keeping.runs("lost")
    assert "narrow" in (failed.error_message or "")
    assert keeping.tally.runs_failed_launch == 1


@pytest.mark.req("CRON-07", error=True)
async def test_a_run_that_fails_is_retried_then_failed_and_the_next_slot_is_unaffected(world: World) -> None:
    keeping = Keeping(world)
    retry = RetryPolicy(max_attempts=3, backoff_ms=100)
    await keeping.schedule(target=Target(kind="flaky", pool=WIDE, retry=retry))
    await keeping.at(1)
    hand = await world.hand()

    for _ in range(3):
        assert await keeping.fates() in (["1: pending"], ["1: running"])
        await hand.fail(*await hand.claim())
        world.clock.advance(1)
        await world.queue.jobs.stage()

    (run,) = await keeping.runs()
    assert (run.status, run.attempt_count, run.error_message) == ("error", 3, "as asked")
    await keeping.at(2)
    assert await keeping.fates() == ["1: error", "2: pending"]


# Several timekeepers


@pytest.mark.req("CRON-11")
async def test_two_timekeepers_at_once_double_nothing_and_lose_nothing(world: World) -> None:
    keeping = Keeping(world)
    names = [f"s{n:03}" for n in range(120)]
    for name in names:
        await keeping.schedule(name, cadence=every("10s"), overlap="allow")
    others = [Keeping(world, await world.another()) for _ in range(2)]

    for minute in (0.5, 1):
        await keeping.alive_until(minute)
        await asyncio.gather(*(each.tick() for each in (keeping, *others)))
        await keeping.tick()

    (count,) = await world.rows("SELECT count(*), count(DISTINCT job_id) FROM schedule_runs")
    assert count == (720, 720)
    assert await world.rows("SELECT count(*) FROM jobs") == [(720,)]
    assert sum(each.tally.runs_emitted for each in (keeping, *others)) == 720


@pytest.mark.req("CRON-11")
@pytest.mark.store("postgres")
async def test_schedules_in_another_timekeepers_hands_are_passed_over(postgres_world: World) -> None:
    keeping = Keeping(postgres_world)
    await keeping.schedule("held")
    other = Keeping(postgres_world, await postgres_world.another())
    await keeping.alive_until(1)

    with stop_after("due_schedules") as point:
        opening = asyncio.create_task(keeping.tick())
        await point.reached.wait()
        await keeping.schedule("free", cadence=once(moment_of(at(1.5))))
        await other.alive_until(1.5)
        await other.tick()
        assert await other.fates("free") == ["1.5: pending"]
        assert await other.fates("held") == []
        point.go.set()
        await opening

    assert await other.fates("held") == ["1: pending"]


# Counting and telling


@pytest.mark.req("CRON-12")
@pytest.mark.req("OWN-02")
async def test_every_decision_is_told_once_with_its_reason(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.alive_until(1)
    world.clock.advance(0.25)

    await keeping.tick()
    await keeping.at(2)

    opened, skipped = keeping.heard
    assert (opened.fate, opened.slot, opened.late, opened.reason) == (Fate.OPENED, at(1), 250_000, None)
    assert (skipped.fate, skipped.slot, skipped.reason) == (Fate.SKIPPED, at(2), "overlap")
    assert skipped.detail == f"{opened.run_id} was still waiting"
    tally = keeping.tally
    assert (tally.schedules_due, tally.runs_emitted, tally.runs_skipped_overlap) == (2, 1, 1)
    assert sum(tally.drift.counts) == 1


@pytest.mark.req("CRON-12", error=True)
async def test_what_was_not_committed_is_not_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    async def lost(self: SqlSchedules, schedules: object) -> None:
        raise Unavailable("as the last statement was sent")

    monkeypatch.setattr(SqlSchedules, "advance", lost)
    with pytest.raises(Unavailable):
        await keeping.at(1)

    assert keeping.heard == []
    assert keeping.tally.runs_emitted == 0


async def test_the_agenda_names_the_next_fire(world: World) -> None:
    keeping = Keeping(world)
    assert (await world.queue.timekeeping.agenda()).fire_at is None

    await keeping.schedule("later", cadence=once(datetime.fromtimestamp(MORNING // SECOND, UTC) + timedelta(hours=1)))
    await keeping.schedule("sooner")

    assert (await world.queue.timekeeping.agenda()).fire_at == at(1)


async def test_jobs_that_ended_are_as_the_ledger_says(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(3)
    hand = await world.hand()
    first, second, third = await hand.claim(3)

    await hand.finish(first)
    await hand.fail(second)
    await world.queue.jobs.cancel(third.id, reason="enough")
    await hand.fail(third)

    assert await keeping.fates() == ["1: success", "2: error", "3: cancelled"]
    assert (await world.ended(third.id)).status is JobStatus.CANCELLED


@pytest.mark.req("OWN-06", error=True)
async def test_slots_that_are_opened_in_time_are_not_missed_while_the_heart_is_held_up(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=every("10s"), overlap="allow")
    await keeping.at(1)
    world.clock.advance(0.005)

    for _ in range(30):
        world.clock.advance(10)
        await keeping.tick()

    assert await keeping.missed() == []
