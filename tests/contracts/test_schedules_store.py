"""Schedules as they are stored: what comes back is what was put, and slots only move on."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from duly.domain.cadence import Bounded, Cadence, UnreadableCron, cron, every, once
from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner, PoolName, ScheduleId
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.policies import CatchUp, Overlap
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import ScheduleState, Target
from duly.ports.storage import Transaction
from tests.contracts.clocks import MORNING
from tests.contracts.plans import HOURLY, opened, planned, revised, schedule
from tests.contracts.points import stop_after
from tests.contracts.world import World

HOURLY_ID = ScheduleId("hourly")
DAY = timedelta(days=1)
TODAY = moment_of(MORNING).replace(microsecond=0)
LATER = Instant(MORNING + 10_000 * SECOND)


@pytest.mark.req("OWN-07")
@pytest.mark.req("DEC-010")
@pytest.mark.parametrize(
    "cadence",
    [
        cron("*/5 9-17 * * MON-FRI", "Europe/Berlin"),
        cron("30 0 0 * * *"),
        every("1h30m"),
        every("7s", anchor=datetime(2020, 2, 29, 12, tzinfo=UTC)),
        once(TODAY + DAY),
        cron("@daily").within(start_at=TODAY),
        every("1d").within(end_at=TODAY + 9 * DAY),
        once(TODAY + DAY).within(start_at=TODAY, end_at=TODAY + 2 * DAY),
    ],
    ids=repr,
)
async def test_every_cadence_comes_back_as_it_was(world: World, cadence: Cadence) -> None:
    made = await planned(world, cadence=cadence)

    found = await world.transact(lambda tx: tx.schedules.get(made.id))

    assert found == made
    assert found is not None
    assert found.cadence.next_second(made.opened_through) == made.next_slot


@pytest.mark.req("OWN-07")
async def test_bounds_within_bounds_come_back_as_what_both_leave(world: World) -> None:
    wide = HOURLY.within(start_at=TODAY, end_at=TODAY + 2 * DAY)
    await planned(world, cadence=wide.within(start_at=TODAY - DAY, end_at=TODAY + DAY))

    found = await world.transact(lambda tx: tx.schedules.get(HOURLY_ID))

    assert found is not None
    assert found.cadence == HOURLY.within(start_at=TODAY, end_at=TODAY + DAY)


@pytest.mark.req("OWN-07")
@pytest.mark.parametrize("overlap", list(Overlap))
@pytest.mark.parametrize("catch_up", list(CatchUp))
async def test_every_policy_comes_back_as_it_was(world: World, overlap: Overlap, catch_up: CatchUp) -> None:
    made = await planned(world, overlap=overlap, catch_up=catch_up, catch_up_cap=7, jitter_ms=1_500)

    assert await world.transact(lambda tx: tx.schedules.get(made.id)) == made


@pytest.mark.req("OWN-07")
async def test_a_target_comes_back_as_it_was(world: World) -> None:
    target = Target(
        kind="mail.send",
        params={"to": ["ä@example.org"], "deep": {"n": 1.5, "none": None}},
        pool=PoolName("wide"),
        priority=-3,
        retry=RetryPolicy(max_attempts=5, backoff_ms=10, backoff_cap_ms=20),
        timeout_ms=60_000,
    )
    made = replace(schedule(), target=target, state_reason="because", last_run_at=MORNING)
    await world.transact(lambda tx: tx.schedules.add(made))

    assert await world.transact(lambda tx: tx.schedules.get(made.id)) == made


@pytest.mark.req("OWN-07", error=True)
async def test_a_cadence_of_an_unknown_kind_is_refused(world: World) -> None:
    class Whenever(Cadence):
        def next_second(self, after: int) -> int | None:
            return after + 1

        def last_second(self, through: int) -> int | None:
            return through

        def count(self, after: int, through: int) -> int:
            return max(through - after, 0)

        def explain(self) -> str:
            return "Whenever"

    with pytest.raises(InvalidInput, match="Whenever"):
        await planned(world, cadence=Whenever())


@pytest.mark.req("CRON-01", error=True)
async def test_an_id_is_taken_once_even_by_two_at_the_same_time(world: World) -> None:
    storages = [world.queue.storage, (await world.another()).storage]
    rivals = [schedule(owner="ann"), schedule(owner="bob")]

    async def add(n: int) -> bool:
        return await storages[n].transact(lambda tx: tx.schedules.add(rivals[n]))

    added = await asyncio.gather(add(0), add(1))

    assert sorted(added) == [False, True]
    assert await world.transact(lambda tx: tx.schedules.get(HOURLY_ID)) == rivals[added.index(True)]
    assert len(await world.transact(lambda tx: tx.schedules.revisions(HOURLY_ID))) == 1


@pytest.mark.req("OWN-01")
async def test_every_change_appends_a_revision_and_rewrites_none(world: World) -> None:
    first = await planned(world)
    second = first.changed(at=LATER, cadence=cron("@hourly", "Asia/Tokyo"))
    third = second.changed(at=Instant(LATER + 1), state=ScheduleState.PAUSED, state_reason="holidays")

    await revised(world, second)
    await revised(world, third)

    assert await world.transact(lambda tx: tx.schedules.get(HOURLY_ID)) == third
    revisions = await world.transact(lambda tx: tx.schedules.revisions(HOURLY_ID))
    assert revisions == [first.recorded(), second.recorded(), third.recorded()]


@pytest.mark.req("GRAPH-12")
async def test_lists_are_in_order_of_id_by_owner_or_all_without_tombstones(world: World) -> None:
    made = [await planned(world, name, owner=owner) for name, owner in (("c", "ann"), ("a", "ann"), ("b", "bob"))]
    await revised(world, (await planned(world, "aa")).changed(at=MORNING, state=ScheduleState.DELETED))
    c, a, b = made

    async def lists(tx: Transaction) -> list[list[ScheduleId]]:
        pages = [
            await tx.schedules.of_owner(None, after=None, most=10),
            await tx.schedules.of_owner(None, after=a.id, most=1),
            await tx.schedules.of_owner(Owner("ann"), after=None, most=10),
            await tx.schedules.of_owner(Owner("ann"), after=c.id, most=10),
        ]
        return [[found.id for found in page] for page in pages]

    assert await world.transact(lists) == [[a.id, b.id, c.id], [b.id], [a.id, c.id], []]


@pytest.mark.req("GRAPH-08")
async def test_what_is_due_comes_the_earliest_first_and_no_more_than_asked_for(world: World) -> None:
    for name, minutes in (("late", 30), ("early", 10), ("middle", 20)):
        await planned(world, name, cadence=once(TODAY + timedelta(minutes=minutes)))
    await planned(world, "later", cadence=once(TODAY + DAY))
    await revised(world, (await planned(world, "paused")).changed(at=MORNING, state=ScheduleState.PAUSED))

    due = await world.transact(lambda tx: tx.schedules.due(LATER, 2))

    assert [found.id for found in due] == ["early", "middle"]
    assert len(await world.transact(lambda tx: tx.schedules.due(LATER, 10))) == 3
    assert (await world.transact(lambda tx: tx.ledger.agenda())).fire_at == due[0].fire_at


@pytest.mark.req("GRAPH-08")
async def test_a_schedule_that_advanced_is_due_at_its_next_slot(world: World) -> None:
    made = await planned(world)
    moved = replace(opened(made), last_run_at=LATER)

    await world.transact(lambda tx: tx.schedules.advance([moved]))

    assert await world.transact(lambda tx: tx.schedules.get(made.id)) == moved
    assert await world.transact(lambda tx: tx.schedules.due(Instant(made.opened_through * SECOND), 10)) == []
    assert await world.transact(lambda tx: tx.schedules.revisions(made.id)) == [made.recorded()]


@pytest.mark.req("GRAPH-08", error=True)
async def test_a_schedule_never_goes_back(world: World) -> None:
    made = await planned(world)
    moved = opened(opened(made))
    await world.transact(lambda tx: tx.schedules.advance([moved]))

    await world.transact(lambda tx: tx.schedules.advance([opened(made)]))

    assert await world.transact(lambda tx: tx.schedules.get(made.id)) == moved


@pytest.mark.req("GRAPH-08")
async def test_a_cadence_without_a_fire_left_leaves_nothing_due(world: World) -> None:
    made = await planned(world, cadence=once(TODAY + DAY))

    await world.transact(lambda tx: tx.schedules.advance([opened(made)]))

    assert (await world.transact(lambda tx: tx.ledger.agenda())).fire_at is None


@pytest.mark.req("CRON-11")
@pytest.mark.store("postgres")
async def test_what_another_has_locked_is_passed_over(postgres_world: World) -> None:
    world = postgres_world
    for name in ("one", "two"):
        await planned(world, name, cadence=HOURLY)
    later = Instant(MORNING + 4_000 * SECOND)
    with stop_after("due_schedules") as point:
        first = asyncio.create_task(world.transact(lambda tx: tx.schedules.due(later, 1)))
        await point.reached.wait()
        second = await world.transact(lambda tx: tx.schedules.due(later, 10))
        point.go.set()

    assert {found.id for found in [*await first, *second]} == {"one", "two"}
    assert len(second) == 1


@pytest.mark.req("DEC-010", error=True)
async def test_a_zone_that_is_no_more_stops_its_own_schedule_only(world: World) -> None:
    await planned(world, "bad", cadence=cron("@hourly", "Europe/Berlin").within(start_at=TODAY))
    await planned(world, "good")
    await world.rows("UPDATE schedules SET timezone = 'Mars/Base' WHERE id = 'bad'")

    due = {found.id: found for found in await world.transact(lambda tx: tx.schedules.due(LATER, 10))}

    bad = due[ScheduleId("bad")]
    assert opened(due[ScheduleId("good")]).next_slot
    assert isinstance(bad.cadence, Bounded)
    assert isinstance(bad.cadence.cadence, UnreadableCron)
    with pytest.raises(InvalidInput, match="Mars/Base"):
        opened(bad)

    broken = await revised(world, bad.changed(at=LATER, state=ScheduleState.BROKEN, state_reason="no such zone"))
    assert await world.transact(lambda tx: tx.schedules.get(bad.id)) == broken
    mended = await revised(world, broken.changed(at=LATER, state=ScheduleState.ACTIVE, cadence=cron("@hourly")))
    assert await world.transact(lambda tx: tx.schedules.get(bad.id)) == mended
