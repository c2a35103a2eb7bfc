"""A program's declared schedules are made so at its start, and what people made is left alone."""

from typing import Any

import pytest

from duly import every, once
from duly.domain.declarations import Declared, Reconciled
from duly.domain.errors import InvalidInput
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.policies import Policies
from duly.domain.pools import UnknownPool
from duly.domain.schedules import ScheduleState, Target, UnknownSchedule
from tests.contracts.keeping import Keeping
from tests.contracts.meanwhile import interrupted
from tests.contracts.world import WIDE, World

A, B, C = ScheduleId("a"), ScheduleId("b"), ScheduleId("c")


def declared(schedule_id: str, minutes: int = 5, **rest: Any) -> Declared:
    return Declared(id=schedule_id, cadence=every(f"{minutes}m"), target=Target(kind="work", pool=WIDE), **rest)


async def reconcile(world: World, *given: Declared, **rest: Any) -> Reconciled:
    return await world.queue.declarations.reconcile("letters", given, **{"owner": "ann", **rest})


async def tables(world: World) -> list[list[tuple[Any, ...]]]:
    return [
        await world.rows(f"SELECT * FROM {table} ORDER BY 1, 2")
        for table in ("schedules", "schedule_revisions", "declared_schedules")
    ]


async def test_absent_ones_are_created_alike_ones_left_changed_ones_edited_and_others_retired(world: World) -> None:
    assert await reconcile(world, declared("a"), declared("b"), declared("c")) == Reconciled(created=(A, B, C))
    world.clock.advance(1)
    before = await world.queue.schedules.get("a", owner="ann")

    again = await reconcile(world, declared("a"), declared("b", 7), declared("d"))

    assert again == Reconciled(created=(ScheduleId("d"),), updated=(B,), unchanged=(A,), retired=(C,))
    assert await world.queue.schedules.get("a", owner="ann") == before
    changed = await world.queue.schedules.get("b", owner="ann")
    assert (changed.cadence, changed.revision) == (every("7m"), 2)
    with pytest.raises(UnknownSchedule):
        await world.queue.schedules.get("c", owner="ann")


async def test_declaring_the_same_again_writes_nothing(world: World) -> None:
    given = (declared("a"), declared("b", policies=Policies(overlap="queue")))  # type: ignore[arg-type]
    await reconcile(world, *given)
    before = await tables(world)
    world.clock.advance(3_600)

    assert await reconcile(world, *given) == Reconciled(unchanged=(A, B))
    assert await tables(world) == before


async def test_what_is_paused_stays_paused_even_if_it_is_changed(world: World) -> None:
    await reconcile(world, declared("a"), declared("b"))
    for name in ("a", "b"):
        await world.queue.schedules.pause(name, owner="ann")

    assert await reconcile(world, declared("a"), declared("b", 7)) == Reconciled(unchanged=(A,), updated=(B,))

    for name in ("a", "b"):
        assert (await world.queue.schedules.get(name, owner="ann")).state is ScheduleState.PAUSED


async def test_what_somebody_changed_by_hand_is_changed_back_and_told(world: World) -> None:
    given = (declared("a"), declared("b"))
    await reconcile(world, *given)
    await world.queue.schedules.edit(A, owner=None, cadence=every("9m"))

    assert await reconcile(world, *given) == Reconciled(unchanged=(B,), updated=(A,), restored=(A,))
    assert await reconcile(world, declared("a", 8), declared("b")) == Reconciled(unchanged=(B,), updated=(A,))


async def test_a_dry_run_says_the_same_and_writes_nothing(world: World) -> None:
    await Keeping(world).schedule("by-hand")
    await reconcile(world, declared("a"), declared("b"), declared("c"))
    before = await tables(world)
    given = (declared("a"), declared("b", 7), declared("d"), declared("by-hand"))

    said = await reconcile(world, *given, dry_run=True)

    assert await tables(world) == before
    assert said.retired == (C,)
    assert await reconcile(world, *given) == said


async def test_what_others_made_own_or_declared_is_a_conflict_and_left_alone(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule("by-hand", owner="ann")
    await keeping.schedule("of-bob", owner="bob")
    await keeping.schedule("bobs-tomb", owner="bob")
    await keeping.schedules.delete("bobs-tomb", owner="bob")
    await world.queue.declarations.reconcile("numbers", [declared("of-numbers")], owner="ann")
    before = await tables(world)
    ids = ("by-hand", "of-bob", "bobs-tomb", "of-numbers")

    said = await reconcile(world, *(declared(name, 9) for name in ids))

    assert [name for name, _ in said.conflicts] == list(ids)
    assert (said.created, said.updated, said.unchanged, said.retired) == ((), (), (), ())
    whys = dict(said.conflicts)
    assert "by hand" in whys[ScheduleId("by-hand")]
    assert "numbers" in whys[ScheduleId("of-numbers")]
    assert "bob" not in whys[ScheduleId("of-bob")]
    assert await tables(world) == before


async def test_programs_of_one_name_and_two_owners_are_two(world: World) -> None:
    await reconcile(world, declared("a"))

    assert await reconcile(world, declared("b"), owner="bob") == Reconciled(created=(B,))
    assert await reconcile(world, declared("a")) == Reconciled(unchanged=(A,))


async def test_what_was_deleted_comes_back_when_it_is_declared_and_is_left_to_whoever_made_it_anew(
    world: World,
) -> None:
    keeping = Keeping(world)
    await reconcile(world, declared("a"), declared("b"))
    for name in ("a", "b"):
        await keeping.schedules.delete(name, owner="ann")
    await keeping.schedule("b", owner="ann")

    said = await reconcile(world, declared("a"), declared("b"))

    assert (said.created, [name for name, _ in said.conflicts]) == ((A,), [B])
    back = await keeping.get("a")
    assert (back.state, back.revision) == (ScheduleState.ACTIVE, 3)
    assert await reconcile(world) == Reconciled(retired=(A,))
    assert (await keeping.get("b")).state is ScheduleState.ACTIVE


@pytest.mark.parametrize("program", [None, "parcels"])
async def test_what_somebody_took_over_while_it_was_to_be_retired_is_left_alone(
    world: World, program: str | None
) -> None:
    queue, storage = interrupted(world)
    await reconcile(world, declared("a"))

    async def take_over() -> None:
        await world.queue.schedules.delete("a", owner="ann")
        world.clock.advance(1)
        if program is None:
            target = Target(kind="work", pool=WIDE)
            await world.queue.schedules.create(owner="ann", schedule_id="a", cadence=every("1h"), target=target)
        else:
            await world.queue.declarations.reconcile(program, [declared("a")], owner="ann")

    storage.happens = take_over

    assert await queue.declarations.reconcile("letters", [], owner="ann") == Reconciled()
    assert storage.happens is None
    assert (await world.queue.schedules.get("a", owner="ann")).state is ScheduleState.ACTIVE


async def test_reconciling_that_was_cut_goes_on_at_the_next_start(world: World) -> None:
    await reconcile(world, declared("gone"))
    bad = Declared(id="b", cadence=every("5m"), target=Target(kind="work", pool="nowhere"))  # type: ignore[arg-type]
    with pytest.raises(UnknownPool):
        await reconcile(world, declared("a"), bad, declared("c"))
    assert await world.rows("SELECT schedule_id FROM declared_schedules ORDER BY 1") == [("a",), ("gone",)]

    said = await reconcile(world, declared("a"), declared("b"), declared("c"))

    assert said == Reconciled(created=(B, C), unchanged=(A,), retired=(ScheduleId("gone"),))
    live = [schedule.id for schedule in await world.queue.schedules.list(owner="ann")]
    assert live == ["a", "b", "c"]


async def test_once_that_is_over_is_alike_if_it_was_made_and_a_conflict_if_it_never_was(world: World) -> None:
    soon = once(moment_of(Instant(world.clock.now() + 5 * SECOND)))
    target = Target(kind="work", pool=WIDE)
    await reconcile(world, Declared(id="a", cadence=soon, target=target))
    world.clock.advance(60)

    said = await reconcile(
        world, Declared(id="a", cadence=soon, target=target), Declared(id="b", cadence=soon, target=target)
    )

    assert (said.unchanged, said.conflicts) == ((A,), ((B, "its cadence has no fire left"),))


async def test_an_id_that_is_declared_twice_is_refused_before_anything_is_written(world: World) -> None:
    with pytest.raises(InvalidInput, match="declared twice"):
        await reconcile(world, declared("a"), declared("b"), declared("a", 7))

    assert await world.queue.schedules.list(owner="ann") == []


async def test_what_was_due_before_an_edit_is_opened_first(world: World) -> None:
    keeping = Keeping(world)
    await reconcile(world, declared("a", 1))
    await keeping.alive_until(1.5)

    await reconcile(world, declared("a", 2))

    assert await keeping.fates("a") == ["1: pending"]
    await keeping.accounts_for_every_slot("a")
