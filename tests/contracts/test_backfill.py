"""Runs that no cadence planned: by hand, and for fires of the past."""

from typing import Any

import pytest

from duly import InvalidInput, NotFound, every
from duly.domain.instants import moment_of
from duly.domain.pools import PoolDraining
from duly.domain.runs import RunKind
from duly.domain.schedules import Target, UnknownSchedule
from tests.contracts.keeping import Keeping, at
from tests.contracts.world import WIDE, World

PAST: dict[str, Any] = {"start": moment_of(at(-5)), "end": moment_of(at(-3))}
KEYS = [f"s:2027-01-15T07:{minute}:00Z" for minute in (55, 56, 57)]

# By hand


async def test_a_run_by_hand_stands_beside_the_slots(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")
    await keeping.at(1)
    run = await keeping.schedules.run_now("s", owner="ann")

    assert (run.kind, run.scheduled_for, run.revision, run.status) == (RunKind.MANUAL, at(1), 1, "pending")
    assert await keeping.fates() == ["1: pending", "1: pending"]
    assert await (await world.hand()).work_off() == ["s", "s"]


@pytest.mark.req("GRAPH-07")
async def test_the_same_key_again_is_the_same_run(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    first = await keeping.schedules.run_now("s", owner="ann", key="order 66")
    world.clock.advance(5)
    again = await keeping.schedules.run_now("s", owner="ann", key="order 66")
    other = await keeping.schedules.run_now("s", owner="ann", key="order 67")

    assert again.id == first.id
    assert other.id != first.id
    assert len(await keeping.runs()) == 2


async def test_runs_without_a_key_are_runs_of_their_own(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")

    await keeping.schedules.run_now("s", owner="ann")
    await keeping.schedules.run_now("s", owner="ann")

    assert len(await (await world.hand()).claim(5)) == 2


async def test_a_paused_schedule_can_be_run_by_hand_and_the_list_shows_when(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await keeping.schedules.pause("s", owner="ann")
    await keeping.alive_until(2)

    await keeping.schedules.run_now("s", owner="ann")

    assert (await keeping.get()).last_run_at == at(2)


async def test_a_run_by_hand_that_no_pool_takes_is_refused_and_leaves_no_row(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    await world.queue.pools.drain(WIDE)

    with pytest.raises(PoolDraining):
        await keeping.schedules.run_now("s", owner="ann")

    assert await keeping.runs() == []


# Backfills


@pytest.mark.req("OWN-05")
async def test_a_preview_shows_exactly_what_a_backfill_runs(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")

    preview = await keeping.schedules.preview_backfill("s", owner="ann", **PAST)
    assert (preview.instants, preview.count) == ((at(-5), at(-4), at(-3)), 3)
    assert await keeping.runs() == []
    runs = await keeping.schedules.backfill("s", owner="ann", **PAST)

    assert tuple(run.scheduled_for for run in runs) == preview.instants
    assert {run.kind for run in runs} == {RunKind.BACKFILL}


@pytest.mark.req("OWN-05")
async def test_a_backfill_runs_oldest_first_under_keys_of_its_own_in_the_lane(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")

    await keeping.schedules.backfill("s", owner="ann", key="may", **PAST)

    hand = await world.hand()
    ran = []
    while jobs := await hand.claim(5):
        ran += [job.key for job in jobs]
        await hand.finish(*jobs)
    assert ran == [f"backfill:may:{key}" for key in KEYS]


async def test_a_backfill_leaves_the_slots_rows_alone(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(2)

    await keeping.schedules.backfill("s", owner="ann", start=moment_of(at(1)), end=moment_of(at(2)))

    kinds = [(run.scheduled_for, run.kind) for run in await keeping.runs()]
    assert sorted(kinds) == [(at(n), kind) for n in (1, 2) for kind in ("backfill", "slot")]


async def test_the_same_backfill_again_adds_what_is_missing_and_runs_nothing_twice(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")

    await keeping.schedules.backfill("s", owner="ann", key="may", **PAST)
    runs = await keeping.schedules.backfill("s", owner="ann", key="may", start=PAST["start"], end=moment_of(at(-1)))

    assert [run.scheduled_for for run in runs] == [at(n) for n in (-5, -4, -3, -2, -1)]
    assert len(await (await world.hand()).claim(50)) == 5


@pytest.mark.req("OWN-05", error=True)
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cap": 2}, "cap"),
        ({"cap": 0}, "cap"),
        ({"cap": 10_001}, "cap"),
        ({"start": moment_of(at(-3)), "end": moment_of(at(-5))}, "end"),
        ({"end": moment_of(at(0.5))}, "end"),
        ({"start": moment_of(at(-3)).replace(tzinfo=None)}, "start"),
        ({"start": moment_of(at(-4.5)), "end": moment_of(at(-4.4))}, "start"),
        ({"key": "x" * 65}, "key"),
        ({"key": ""}, "key"),
    ],
)
async def test_a_backfill_beyond_its_bounds_is_refused_whole(
    world: World, given: dict[str, object], field: str
) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    with pytest.raises(InvalidInput) as refused:
        await keeping.schedules.backfill("s", owner="ann", **(PAST | given))

    assert refused.value.field == field
    assert await keeping.runs() == []


async def test_a_preview_counts_what_is_more_than_the_cap(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(cadence=every("1s"))
    year: dict[str, Any] = {"start": moment_of(at(-365 * 24 * 60)), "end": moment_of(at(0))}

    preview = await keeping.schedules.preview_backfill("s", owner="ann", cap=3, **year)

    assert (preview.count, len(preview.instants)) == (365 * 86_400 + 1, 3)


async def test_the_longest_names_fit(world: World) -> None:
    keeping = Keeping(world)
    name, key = "s" * 160, "k" * 64
    await keeping.schedule(name, target=Target(kind="long", pool=WIDE), overlap="queue")

    await keeping.schedules.backfill(name, owner="ann", key=key, **PAST)
    await keeping.schedules.run_now(name, owner="ann", key=key)
    await keeping.at(1)

    assert await (await world.hand()).work_off() == ["long"] * 5


async def test_runs_of_what_is_not_there_or_not_ones_own_are_not_found(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule("theirs", owner="bob")

    for name in ("theirs", "nobodys"):
        with pytest.raises(UnknownSchedule):
            await keeping.schedules.run_now(name, owner="ann")
        with pytest.raises(NotFound):
            await keeping.schedules.backfill(name, owner="ann", **PAST)
        with pytest.raises(NotFound):
            await keeping.schedules.preview_backfill(name, owner="ann", **PAST)
