"""Schedules are made, edited, paused and deleted between slots: each slot belongs to the revision that planned it."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from duly import InvalidInput, NotFound, cron, every, once
from duly.domain.instants import SECOND, moment_of
from duly.domain.policies import Policies
from duly.domain.pools import UnknownPool
from duly.domain.runs import Run
from duly.domain.schedules import ScheduleChanged, ScheduleExists, ScheduleState, Target, UnknownSchedule
from duly.ports.schedule_control import ScheduleControl
from tests.contracts.keeping import MINUTELY, Keeping, at
from tests.contracts.points import met, stop_before
from tests.contracts.world import WIDE, World

WORK = Target(kind="work", pool=WIDE)
OTHER = Target(kind="other", pool=WIDE)

# Making


async def test_a_schedule_begins_with_the_next_slot_after_now(world: World) -> None:
    keeping = Keeping(world)
    world.clock.advance(60)

    made = await keeping.schedules.create(owner="ann", cadence=MINUTELY, target=WORK)

    assert (made.revision, made.next_slot, made.state) == (1, at(2) // SECOND, ScheduleState.ACTIVE)
    assert made.id.startswith("sch_")
    assert await keeping.schedules.get(made.id, owner="ann") == made
    (revision,) = await keeping.schedules.revisions(made.id, owner="ann")
    assert (revision.number, revision.effective_from) == (1, at(1) // SECOND)


@pytest.mark.req("CRON-14")
async def test_a_schedule_that_names_no_policies_has_the_default_ones(world: World) -> None:
    made = await world.queue.schedules.create(owner="ann", cadence=MINUTELY, target=WORK)

    assert made.policies == Policies(overlap="skip", catch_up="none", jitter_ms=0)  # type: ignore[arg-type]


async def test_a_schedule_may_begin_paused_and_be_changed_and_resumed_in_one_revision(world: World) -> None:
    schedules = Keeping(world).schedules

    made = await schedules.create(owner="ann", cadence=MINUTELY, target=WORK, schedule_id="s", enabled=False)
    assert (made.revision, made.state, made.next_slot) == (1, ScheduleState.PAUSED, None)
    assert await schedules.get("s", owner="ann") == made

    world.clock.advance(60)
    resumed = await schedules.edit("s", owner="ann", target=OTHER, enabled=True)
    assert (resumed.revision, resumed.state, resumed.target) == (2, ScheduleState.ACTIVE, OTHER)
    assert resumed.next_slot == at(2) // SECOND
    paused = await schedules.edit("s", owner="ann", enabled=False)
    assert (paused.revision, paused.state, paused.next_slot) == (3, ScheduleState.PAUSED, None)


async def test_an_id_is_taken_once(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    for owner in ("ann", "bob"):
        with pytest.raises(ScheduleExists):
            await keeping.schedule(owner=owner)

    assert len(await keeping.schedules.revisions("s", owner=None)) == 1


async def test_two_who_create_one_id_at_once_make_one_schedule(world: World) -> None:
    one, two = Keeping(world), Keeping(world, await world.another())

    made = await asyncio.gather(one.schedule(), two.schedule(), return_exceptions=True)

    assert sorted(type(each).__name__ for each in made) == ["Schedule", "ScheduleExists"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cadence": "0 9 * * *"}, "cadence"),
        ({"cadence": once(datetime(2020, 1, 1, tzinfo=UTC))}, "cadence"),
        ({"target": "work"}, "target"),
        ({"policies": "skip"}, "policies"),
        ({"owner": ""}, "owner"),
        ({"schedule_id": "x" * 161}, "id"),
        ({"target": Target(kind="work", pool=WIDE, params={"a": 1}), "schedule_id": "a\nb"}, "id"),
    ],
)
@pytest.mark.req("GRAPH-21", error=True)
async def test_what_means_nothing_is_refused_with_its_field(world: World, given: dict[str, object], field: str) -> None:
    asked: dict[str, object] = {"owner": "ann", "cadence": MINUTELY, "target": WORK, "schedule_id": "s"}

    with pytest.raises(InvalidInput) as refused:
        await world.queue.schedules.create(**(asked | given))  # type: ignore[arg-type]

    assert refused.value.field == field
    assert await world.queue.schedules.list(owner=None) == []


@pytest.mark.parametrize("wrong", [5, b"s", "a\0b", "\ud800", ""])
async def test_what_cannot_be_an_id_or_an_owner_is_refused_on_both_stores_alike(world: World, wrong: Any) -> None:
    schedules = world.queue.schedules
    for asking, field in (
        (schedules.get(wrong, owner=None), "id"),
        (schedules.pause(wrong, owner=None), "id"),
        (schedules.list(owner=wrong), "owner"),
        (schedules.list(owner=None, after=wrong), "after"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await asking
        assert refused.value.field == field


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"expected_revision": "1"}, "expected_revision"),
        ({"expected_revision": True}, "expected_revision"),
        ({"expected_revision": 10**30}, "expected_revision"),
        ({"withdraw": "no"}, "withdraw"),
    ],
)
async def test_a_change_that_means_nothing_is_refused_with_its_field(
    world: World, given: dict[str, Any], field: str
) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    with pytest.raises(InvalidInput) as refused:
        await keeping.schedules.pause("s", owner="ann", **given)

    assert refused.value.field == field
    assert (await keeping.get()).revision == 1


@pytest.mark.parametrize("before", ["2027-01-15T08:01:00Z", datetime(2027, 1, 15, tzinfo=UTC), 10**30])
async def test_runs_are_listed_before_an_instant_and_nothing_else(world: World, before: Any) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    with pytest.raises(InvalidInput) as refused:
        await keeping.schedules.runs("s", owner=None, before=before)

    assert refused.value.field == "before"


async def test_a_pool_that_is_not_there_is_refused(world: World) -> None:
    keeping = Keeping(world)
    nowhere = Target(kind="work", pool="nowhere")  # type: ignore[arg-type]
    await keeping.schedule()

    with pytest.raises(UnknownPool):
        await keeping.schedules.create(owner="ann", cadence=MINUTELY, target=nowhere)
    with pytest.raises(UnknownPool):
        await keeping.schedules.edit("s", owner="ann", target=nowhere)

    assert (await keeping.get()).revision == 1


# Upserting


async def test_an_upsert_of_what_is_over_leaves_it_as_it_is(world: World) -> None:
    """As a program does that says at each start which schedules it has."""
    keeping = Keeping(world)
    upsert = keeping.schedules.upsert
    single = once(moment_of(at(1)))
    made = await upsert("s", owner="ann", cadence=single, target=WORK)
    await keeping.at(2)

    again = await upsert("s", owner="ann", cadence=single, target=WORK)

    assert (again.revision, again.next_slot, again.created_at) == (1, None, made.created_at)
    for changed in ({"target": OTHER}, {"owner": "bob"}, {"schedule_id": "t"}):
        asked: dict[str, Any] = {"schedule_id": "s", "owner": "ann", "cadence": single, "target": WORK} | changed
        with pytest.raises(InvalidInput, match="no fire left"):
            await upsert(**asked)


async def test_an_upsert_creates_then_changes_then_leaves_as_it_is(world: World) -> None:
    keeping = Keeping(world)
    upsert = keeping.schedules.upsert

    made = await upsert("s", owner="ann", cadence=MINUTELY, target=WORK)
    changed = await upsert("s", owner="ann", cadence=every("2m"), target=WORK)
    again = await upsert("s", owner="ann", cadence=every("2m"), target=WORK)

    assert [made.revision, changed.revision, again.revision] == [1, 2, 2]
    assert changed.next_slot == at(2) // SECOND


async def test_an_upsert_clears_a_pause(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.schedules.pause("s", owner="ann")

    active = await keeping.schedules.upsert("s", owner="ann", cadence=MINUTELY, target=WORK)

    assert (active.state, active.next_slot) == (ScheduleState.ACTIVE, at(1) // SECOND)


async def test_an_upsert_of_somebody_elses_id_finds_nothing(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(owner="bob")

    with pytest.raises(UnknownSchedule):
        await keeping.schedules.upsert("s", owner="ann", cadence=MINUTELY, target=WORK)


# On either side of a slot


@pytest.mark.req("GRAPH-08")
@pytest.mark.req("DEC-010")
@pytest.mark.parametrize("minutes", [0.9, 1, 1.1, 1.9, 2, 2.1])
@pytest.mark.parametrize("ticked", [False, True])
async def test_an_edit_opens_what_was_due_before_it_and_plans_anew_after_it(
    world: World, minutes: float, ticked: bool
) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await (keeping.at(minutes) if ticked else keeping.alive_until(minutes))

    edited = await keeping.schedules.edit("s", owner="ann", cadence=every("30s"), target=OTHER)
    await keeping.at(3)

    runs = [(run.revision, run.scheduled_for) for run in await keeping.runs()]
    assert runs == [
        *((1, at(n)) for n in (1, 2) if n <= minutes),
        *((2, at(n / 2)) for n in range(1, 7) if n / 2 > minutes),
    ]
    assert edited.recorded().effective_from == at(minutes) // SECOND
    await keeping.accounts_for_every_slot()


@pytest.mark.parametrize("minutes", [0.9, 1, 1.1])
@pytest.mark.parametrize("change", ["pause", "delete"])
async def test_a_slot_up_to_a_pause_or_a_deletion_runs_and_none_after_it(
    world: World, change: str, minutes: float
) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.alive_until(minutes)

    stopped = await getattr(keeping.schedules, change)("s", owner="ann")
    await keeping.at(5)

    assert (stopped.next_slot, stopped.fire_at) == (None, None)
    assert [run.scheduled_for for run in await keeping.runs()] == ([at(1)] if minutes >= 1 else [])
    await keeping.accounts_for_every_slot()


async def test_a_schedule_that_is_resumed_makes_up_for_nothing(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(1)
    await keeping.schedules.pause("s", owner="ann")
    await keeping.alive_until(4)

    resumed = await keeping.schedules.resume("s", owner="ann")
    await keeping.at(5)

    assert resumed.revision == 3
    assert await keeping.fates() == ["1: pending", "5: pending"]
    await keeping.accounts_for_every_slot()


async def test_a_change_in_an_outage_records_what_was_missed_first(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.outage_until(10.5)

    await keeping.schedules.pause("s", owner="ann")

    assert await keeping.missed() == [(1, 10, 10, "outage")]
    assert keeping.tally.slots_missed == 10
    await keeping.accounts_for_every_slot()


async def test_a_change_while_many_slots_are_late_opens_all_of_them(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=every("1s"), overlap="replace")
    await keeping.alive_until(4)

    await keeping.schedules.pause("s", owner="ann")

    assert len(await keeping.runs()) == 240
    assert await world.rows("SELECT count(*) FROM jobs") == [(1,)]
    await keeping.accounts_for_every_slot()


@pytest.mark.req("CRON-05", error=True)
@pytest.mark.parametrize("change", ["pause", "delete", "edit"])
async def test_a_slot_whose_jitter_has_not_passed_is_opened_by_a_change_for_its_own_time(
    world: World, change: str
) -> None:
    keeping = Keeping(world)
    names = [f"s{n}" for n in range(20)]
    for name in names:
        await keeping.schedule(name, cadence=every("1h"), jitter_ms=600_000)
    await keeping.at(60)
    late = [name for name in names if not await keeping.runs(name)]
    assert 0 < len(late) < len(names)

    for name in names:
        if change == "edit":
            await keeping.schedules.edit(name, owner="ann", target=OTHER)
        else:
            await getattr(keeping.schedules, change)(name, owner="ann")

    for name in late:
        (run,) = await keeping.runs(name)
        assert run.job_id is not None
        job = await world.live(run.job_id)
        assert (run.scheduled_for, job.state, job.run_at) == (at(60), "scheduled", run.fire_at)
        assert run.fire_at > at(60)
        assert job.kind == name
        await keeping.accounts_for_every_slot(name)


@pytest.mark.req("DEC-010")
async def test_another_zone_counts_from_the_next_slot_on(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=cron("0 12 * * *"))

    edited = await keeping.schedules.edit("s", owner="ann", cadence=cron("0 12 * * *", "America/New_York"))

    assert edited.next_slot == int(datetime(2027, 1, 15, 17, tzinfo=UTC).timestamp())


@pytest.mark.req("DEC-010", error=True)
async def test_a_clock_that_was_set_back_opens_nothing_again_after_an_edit(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(3)

    world.clock.step(-150)
    edited = await keeping.schedules.edit("s", owner="ann", cadence=every("30s"))
    await keeping.at(4)

    assert edited.recorded().effective_from == at(3) // SECOND
    assert await keeping.fates() == [f"{n}: pending" for n in ("1", "2", "3", "3.5", "4")]
    await keeping.accounts_for_every_slot()


# What was opened keeps its snapshot


@pytest.mark.req("INV-005")
@pytest.mark.parametrize("change", ["edit", "pause", "delete"])
async def test_a_job_that_was_opened_runs_as_it_was_planned(world: World, change: str) -> None:
    keeping = Keeping(world)
    await keeping.schedule("before")
    await keeping.at(1)

    if change == "edit":
        await keeping.schedules.edit("before", owner="ann", target=OTHER)
    else:
        await getattr(keeping.schedules, change)("before", owner="ann")

    assert await (await world.hand()).work_off() == ["before"]
    assert await keeping.fates("before") == ["1: success"]


@pytest.mark.req("INV-005", error=True)
@pytest.mark.parametrize("change", ["edit", "pause", "delete"])
async def test_what_waits_is_withdrawn_if_asked_for_and_what_runs_goes_on(world: World, change: str) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")
    await keeping.at(2)
    hand = await world.hand()
    (running,) = await hand.claim()

    given = {"target": OTHER} if change == "edit" else {}
    await getattr(keeping.schedules, change)("s", owner="ann", withdraw=True, **given)
    await hand.finish(running)

    assert await keeping.fates() == ["1: success", "2: cancelled"]
    assert (await keeping.runs())[1].detail == (
        "withdrawn: its schedule came to revision 2, "
        + {"edit": "active", "pause": "paused", "delete": "deleted"}[change]
    )


# Revisions


async def test_every_change_is_a_revision_and_saying_it_again_is_none(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    for _ in range(2):
        await keeping.schedules.pause("s", owner="ann")
    for _ in range(2):
        await keeping.schedules.resume("s", owner="ann")
    for _ in range(2):
        await keeping.schedules.edit("s", owner="ann", policies=Policies(jitter_ms=5))

    revisions = await keeping.schedules.revisions("s", owner="ann")

    assert [(revision.number, revision.state) for revision in revisions] == [
        (1, "active"),
        (2, "paused"),
        (3, "active"),
        (4, "active"),
    ]


@pytest.mark.req("GRAPH-19", error=True)
@pytest.mark.parametrize("change", ["edit", "pause", "resume", "delete"])
async def test_a_change_of_what_somebody_else_changed_is_refused(world: World, change: str) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.schedules.edit("s", owner="ann", target=OTHER, expected_revision=1)
    if change == "resume":
        await keeping.schedules.pause("s", owner="ann")
    given = {"target": WORK} if change == "edit" else {}

    with pytest.raises(ScheduleChanged):
        await getattr(keeping.schedules, change)("s", owner="ann", expected_revision=1, **given)

    assert (await keeping.get()).target == OTHER


async def test_an_edit_of_a_paused_schedule_leaves_it_paused(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.schedules.pause("s", owner="ann")

    edited = await keeping.schedules.edit("s", owner="ann", cadence=every("5m"))

    assert (edited.state, edited.next_slot) == (ScheduleState.PAUSED, None)


async def test_an_edit_to_a_cadence_without_fires_is_refused(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    with pytest.raises(InvalidInput, match="no fire left"):
        await keeping.schedules.edit("s", owner="ann", cadence=once(moment_of(at(0))))

    assert (await keeping.get()).revision == 1


# Tombstones


async def test_a_deleted_schedule_is_gone_and_its_ledger_stays(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.at(1)
    await keeping.schedules.delete("s", owner="ann")

    for call in (keeping.schedules.get, keeping.schedules.pause, keeping.schedules.delete, keeping.schedules.run_now):
        with pytest.raises(UnknownSchedule):
            await call("s", owner="ann")
    assert await keeping.schedules.list(owner="ann") == []
    assert await keeping.fates() == ["1: pending"]
    assert len(await keeping.schedules.revisions("s", owner="ann")) == 2


@pytest.mark.req("GRAPH-07")
async def test_creating_a_deleted_id_again_continues_it_and_opens_nothing_twice(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(2)
    await keeping.schedules.delete("s", owner="ann")
    world.clock.step(-100)

    again = await keeping.schedule(cadence=every("30s"), overlap="allow")
    await keeping.at(3)

    assert (again.revision, again.opened_through) == (3, at(2) // SECOND)
    assert await keeping.fates() == ["1: pending", "2: pending", "2.5: pending", "3: pending"]
    await keeping.accounts_for_every_slot()


async def test_a_tombstone_is_its_owners(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.schedules.delete("s", owner="ann")

    with pytest.raises(ScheduleExists):
        await keeping.schedule(owner="bob")

    assert (await keeping.schedules.upsert("s", owner="ann", cadence=MINUTELY, target=WORK)).revision == 3


# Looking, and who may


async def test_a_caller_sees_only_its_own_and_an_operator_all(world: World) -> None:
    keeping = Keeping(world)
    schedules = keeping.schedules
    await keeping.schedule("a", owner="ann")
    await keeping.schedule("b", owner="bob")

    assert [schedule.id for schedule in await schedules.list(owner="ann")] == ["a"]
    assert [schedule.id for schedule in await schedules.list(owner=None)] == ["a", "b"]
    assert [schedule.id for schedule in await schedules.list(owner=None, after="a")] == ["b"]
    for call in (
        schedules.get,
        schedules.pause,
        schedules.resume,
        schedules.delete,
        schedules.edit,
        schedules.revisions,
        schedules.runs,
        schedules.upcoming,
    ):
        with pytest.raises(NotFound):
            await call("b", owner="ann")
    assert (await schedules.get("b", owner=None)).revision == 1


async def test_the_next_fires_are_shown_with_their_jitter(world: World) -> None:
    keeping = Keeping(world)
    made = await keeping.schedule(jitter_ms=5_000)

    fires = await keeping.schedules.upcoming("s", owner="ann")

    assert [fire.slot for fire in fires] == [at(n) for n in (1, 2, 3, 4, 5)]
    assert [fire.fire_at for fire in fires] == [made.fires_at(fire.slot // SECOND) for fire in fires]
    await keeping.schedules.pause("s", owner="ann")
    assert await keeping.schedules.upcoming("s", owner="ann") == []


async def test_runs_are_listed_page_by_page_and_none_is_left_out(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    for minute in (1, 2, 3):
        await keeping.at(minute)
        await keeping.schedules.run_now("s", owner="ann")
    everything = list(reversed(await keeping.runs()))

    seen: list[Run] = []
    before = None
    while page := await keeping.schedules.runs("s", owner="ann", before=before, most=3):
        seen += page
        before = page[-1].scheduled_for

    assert len(everything) == 6
    assert seen == everything


@pytest.mark.req("GRAPH-21")
async def test_schedules_are_controlled_through_a_port_that_names_no_engine(world: World) -> None:
    control: ScheduleControl = world.queue.schedules

    made = await control.create(owner="ann", cadence=MINUTELY, target=WORK)
    await control.update(made.id, owner="ann", target=OTHER, expected_revision=1)
    await control.pause(made.id, owner="ann")
    await control.resume(made.id, owner="ann")
    run = await control.trigger(made.id, owner="ann", key="now")
    filled = await control.backfill(made.id, owner="ann", start=moment_of(at(-1)), end=moment_of(at(0)))
    described = await control.describe(made.id, owner="ann")
    (listed,) = await control.list(owner="ann")
    await control.delete(made.id, owner="ann")

    assert (run.kind, len(filled)) == ("manual", 2)
    assert described == listed
    assert described.revision == 4
    assert await control.list(owner="ann") == []


# At the same time


@pytest.mark.store("postgres")
async def test_a_change_waits_for_the_opening_that_has_the_schedule(postgres_world: World) -> None:
    keeping = Keeping(postgres_world)
    await keeping.schedule(overlap="allow")
    other = Keeping(postgres_world, await postgres_world.another())
    await keeping.alive_until(1)

    with stop_before("advance_schedules") as point:
        opening = asyncio.create_task(keeping.tick())
        await point.reached.wait()
        pausing = asyncio.create_task(other.schedules.pause("s", owner="ann"))
        await met(pausing)
        assert not pausing.done()
        point.go.set()
        await asyncio.gather(opening, pausing)

    assert await keeping.fates() == ["1: pending"]
    assert (await keeping.get()).revision == 2
    await keeping.accounts_for_every_slot()
