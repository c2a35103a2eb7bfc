"""Slots that nobody was there to open: counted, caught up with at their own pace, or left, as their schedule says."""

from typing import Any

import pytest

from duly import cron, every
from duly.application.catching_up import Taken, take
from duly.bootstrap import Queue, Settings
from duly.domain.decisions import Fate
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND
from duly.domain.runs import Arrears, Gap, GapReason
from duly.domain.schedules import Target
from tests.contracts.keeping import Keeping, at
from tests.contracts.world import WIDE, World

FIRE, SPREAD = "fire_immediately", "spread"
EARLIER = Gap(
    schedule_id=ScheduleId("a"),
    reason=GapReason.OUTAGE,
    first=at(-1),
    last=at(-1),
    count=1,
    recorded_at=at(0),
    revision=1,
)


async def _paced(world: World, **settings: Any) -> Keeping:
    queue = await world.another()
    return Keeping(world, Queue.on(queue.storage, queue.dice, Settings(database_url=world.place, **settings)))


# none


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("overlap", ["allow", "skip", "queue", "queue_one", "replace"])
async def test_without_catch_up_missed_slots_are_one_gap_under_every_policy(world: World, overlap: str) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap=overlap)

    await keeping.outage_until(5.5)
    await keeping.tick()
    await keeping.at(6)

    assert await keeping.missed() == [(1, 5, 5, "outage")]
    assert await keeping.fates() == ["6: pending"]
    assert await keeping.owed() == []


@pytest.mark.req("RISK-04")
async def test_two_outages_are_two_gaps_and_what_was_covered_between_them_ran(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.outage_until(3.5)
    await keeping.at(4)
    await keeping.outage_until(7.5)

    await keeping.tick()

    assert await keeping.fates() == ["4: pending"]
    assert await keeping.missed() == [(1, 3, 3, "outage"), (5, 7, 3, "outage")]


# fire_immediately


@pytest.mark.req("CRON-04")
async def test_missed_slots_fire_oldest_first_and_those_of_one_lane_one_by_one(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue", catch_up=FIRE)

    await keeping.outage_until(4.5)
    await keeping.tick()

    assert await keeping.fates() == [f"{minute}: pending" for minute in (1, 2, 3, 4)]
    assert await keeping.missed() == []
    assert await keeping.owed() == []
    hand = await world.hand()
    ran = []
    while jobs := await hand.claim(5):
        ran += [job.key for job in jobs]
        await hand.finish(*jobs)
    assert ran == [f"s:2027-01-15T08:0{minute}:00Z" for minute in (1, 2, 3, 4)]
    assert keeping.tally.runs_caught_up == 4
    assert keeping.tally.drift.total == 0


@pytest.mark.req("CRON-04")
async def test_no_more_are_caught_up_in_a_tick_than_allowed_and_live_slots_are_in_time(world: World) -> None:
    keeping = await _paced(world, max_catchup_per_tick=3)
    await keeping.schedule(overlap="allow", catch_up=FIRE)
    await keeping.outage_until(8.5)

    counts = []
    for _ in range(4):
        await keeping.tick()
        counts.append(len(await keeping.runs()))
        world.clock.advance(1)
    assert counts == [3, 6, 8, 8]

    await keeping.outage_until(20)
    await keeping.tick()

    assert (await keeping.fates())[-1] == "20: pending"
    assert [owed.count for owed in await keeping.owed()] == [8]


async def test_a_ticks_worth_is_shared_among_schedules_in_turn(world: World) -> None:
    keeping = await _paced(world, max_catchup_per_tick=4)
    for name in ("a", "b"):
        await keeping.schedule(name, overlap="allow", catch_up=FIRE)
    await keeping.outage_until(6.5)

    await keeping.tick()
    world.clock.advance(1)
    await keeping.tick()

    assert sorted([len(await keeping.runs("a")), len(await keeping.runs("b"))]) == [4, 4]


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("catch_up", [FIRE, SPREAD])
async def test_what_one_outage_left_comes_before_what_the_next_one_did(world: World, catch_up: str) -> None:
    keeping = await _paced(world, max_catchup_per_tick=2)
    await keeping.schedule(overlap="queue", catch_up=catch_up)
    await keeping.outage_until(6.5)
    await keeping.tick()
    await keeping.outage_until(9.5)

    opened: list[int] = []
    for _ in range(120):
        await keeping.tick()
        missed = [run.scheduled_for for run in await keeping.runs() if run.scheduled_for <= at(9)]
        opened += [slot for slot in missed if slot not in opened]
        world.clock.advance(1)
        await keeping.queue.timekeeping.keep_alive()

    assert opened == [at(minute) for minute in range(1, 10)]


@pytest.mark.req("CRON-04", error=True)
async def test_more_than_the_cap_are_a_gap(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue", catch_up=FIRE, catch_up_cap=3)

    await keeping.outage_until(10.5)
    await keeping.tick()

    assert await keeping.fates() == ["1: pending", "2: pending", "3: pending"]
    assert await keeping.missed() == [(4, 10, 7, "catch_up_cap")]


@pytest.mark.req("RISK-04", error=True)
async def test_after_a_month_what_may_be_caught_up_is_owed_and_the_rest_is_one_gap(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow", catch_up=FIRE)
    month = 30 * 24 * 60

    await keeping.outage_until(month)
    await keeping.tick()

    assert (await keeping.fates())[-1] == f"{month}: pending"
    assert await keeping.missed() == [(1_001, month - 1, month - 1_001, "catch_up_cap")]
    assert [owed.count for owed in await keeping.owed()] == [900]


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("catch_up", [FIRE, SPREAD])
@pytest.mark.parametrize("overlap", ["skip", "queue_one", "replace"])
async def test_where_runs_exclude_each_other_the_newest_stands_for_all(
    world: World, overlap: str, catch_up: str
) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap=overlap, catch_up=catch_up)

    await keeping.outage_until(5.5)
    await keeping.tick()

    assert await keeping.fates() == ["5: pending"]
    ((first, _, count, reason),) = await keeping.missed()
    assert (first, count, reason) == (1, 4, "superseded")


async def test_the_newest_missed_slot_is_decided_like_a_late_one(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="skip", catch_up=FIRE)
    await keeping.at(1)

    await keeping.outage_until(5.5)
    await keeping.tick()

    assert await keeping.fates() == ["1: pending", "5: skipped overlap"]


# spread


@pytest.mark.req("CRON-04")
async def test_spread_slots_come_evenly_over_the_lookahead(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue", catch_up=SPREAD)
    await keeping.outage_until(6.5)

    counts = []
    for _ in range(7):
        await keeping.tick()
        counts.append(len([run for run in await keeping.runs() if run.scheduled_for < at(6.5)]))
        await keeping.alive_until((world.clock.now() - at(0)) / (60 * SECOND) + 1 / 6)

    assert counts == [1, 2, 3, 4, 5, 6, 6]


async def test_what_is_spread_tells_when_the_next_one_comes(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=every("10s"), overlap="allow", catch_up=SPREAD)
    await keeping.outage_until(2)

    await keeping.tick()

    agenda = await world.queue.timekeeping.agenda()
    assert agenda.arrears_at == at(2) + 60 * SECOND // 11
    assert [fact.count for fact in keeping.heard if fact.fate is Fate.OWED] == [11]


# Changed meanwhile


@pytest.mark.req("INV-005")
@pytest.mark.parametrize("change", ["edit", "pause"])
async def test_what_is_owed_belongs_to_the_revision_that_planned_it(world: World, change: str) -> None:
    keeping = await _paced(world, max_catchup_per_tick=2)
    await keeping.schedule(overlap="queue", catch_up=FIRE)
    await keeping.outage_until(4.5)
    await keeping.tick()

    if change == "edit":
        other = Target(kind="other", pool=WIDE)
        await keeping.schedules.edit("s", owner="ann", cadence=cron("0 0 1 1 *"), target=other)
    else:
        await keeping.schedules.pause("s", owner="ann")
    world.clock.advance(1)
    await keeping.tick()

    assert await keeping.fates() == [f"{minute}: pending" for minute in (1, 2, 3, 4)]
    assert {run.revision for run in await keeping.runs()} == {1}
    assert await (await world.hand()).work_off() == ["s"] * 4


@pytest.mark.req("INV-005", error=True)
async def test_deleting_a_schedule_forgives_what_it_owes(world: World) -> None:
    keeping = await _paced(world, max_catchup_per_tick=2)
    await keeping.schedule(overlap="queue", catch_up=FIRE)
    await keeping.outage_until(6.5)
    await keeping.tick()

    await keeping.schedules.delete("s", owner="ann")
    world.clock.advance(1)
    await keeping.tick()

    assert await keeping.fates() == ["1: pending", "2: pending"]
    assert await keeping.missed() == [(3, 6, 4, "outage")]
    assert await keeping.owed() == []


async def test_what_an_unreadable_cadence_owes_is_forgiven_and_others_catch_up(world: World) -> None:
    keeping = Keeping(world)
    for name in ("a", "b"):
        berlin = cron("* * * * *", "Europe/Berlin")
        await keeping.schedule(name, cadence=berlin, overlap="allow", catch_up=SPREAD)
    await keeping.outage_until(5.5)
    await keeping.tick()
    await world.transact(lambda tx: tx.ledger.add_gaps([EARLIER]))
    for table in ("schedules", "schedule_revisions"):
        name = "id" if table == "schedules" else "schedule_id"
        await world.rows(f"UPDATE {table} SET timezone = 'Mars/Olympus' WHERE {name} = 'a'")

    await keeping.alive_until(7)
    await keeping.tick()

    assert await keeping.missed("a") == [(-1, -1, 1, "outage"), (2, 5, 4, "outage")]
    await world.rows(f"DELETE FROM schedule_gaps WHERE first_slot = {EARLIER.first}")  # which nobody planned
    assert len(await keeping.runs("b")) == 7


@pytest.mark.req("CRON-04", error=True)
async def test_what_cannot_be_caught_up_now_stays_owed_and_others_catch_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(world)
    for name in ("a", "b"):
        await keeping.schedule(name, overlap="allow", catch_up=FIRE)

    def failing(owed: Arrears, *rest: Any, **more: Any) -> Taken:
        if owed.schedule_id == "a":
            raise RuntimeError("a bug")
        return take(owed, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr("duly.application.openings.take", failing)
        await keeping.outage_until(5.5)
        await keeping.tick()
        await keeping.tick()
    assert len(await keeping.runs("b")) == 5
    assert [owed.count for owed in await world.transact(lambda tx: tx.ledger.arrears(ScheduleId("a")))] == [5]

    await keeping.alive_until(7)
    await keeping.tick()
    assert len(await keeping.runs("a")) == 7
