"""What graphs leave to go on from, on every store: behind the token of the attempt that stands."""

from dataclasses import replace

import pytest

from duly.application.checkpoints import Checkpoints
from duly.domain.checkpoints import CheckpointName, PendingWrite, SavedCheckpoint
from duly.domain.executions import Claim, LeaseLost, OnCrash
from tests.contracts.graphs import House, PatientClock, house
from tests.contracts.world import World


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def graph() -> None: ...


def saved(claim: Claim, checkpoint_id: str, *, state: bytes = b"\x00\xff", namespace: str = "") -> SavedCheckpoint:
    return SavedCheckpoint(
        name=CheckpointName(claim.run_id, namespace, checkpoint_id),
        parent_id=None,
        kind="msgpack",
        state=state,
        about_kind="json",
        about=b"{}",
    )


async def running(world: World, on_crash: OnCrash = OnCrash.RESUME) -> tuple[House, Claim, Checkpoints]:
    home = await house(world.queue, graph)
    execution = await home.begins(home.asks(on_crash=on_crash))
    return home, execution.claim, Checkpoints(world.queue.storage)


async def test_the_newest_is_found_by_its_run_and_namespace_and_all_are_listed(world: World) -> None:
    _, claim, checkpoints = await running(world)
    kept = [saved(claim, "1"), saved(claim, "2"), saved(claim, "3", namespace="sub")]
    for each in kept:
        await checkpoints.put(each, attempt=1, token=claim.token)
    await checkpoints.put(replace(kept[1], state=b"newer"), attempt=1, token=claim.token)

    newest = CheckpointName(claim.run_id, "", None)

    assert await checkpoints.get(newest) == replace(kept[1], state=b"newer")
    assert await checkpoints.get(kept[0].name) == kept[0]
    assert await checkpoints.get(CheckpointName(claim.run_id, "sub", None)) == kept[2]
    assert [each.name.checkpoint_id for each in await checkpoints.list(newest, most=9)] == ["2", "1"]
    assert await checkpoints.list(kept[1].name, most=9) == [kept[0]]
    assert await checkpoints.get(CheckpointName("exe_nowhere", "", None)) is None


async def test_of_writes_the_first_stands_unless_its_place_is_below_zero(world: World) -> None:
    _, claim, checkpoints = await running(world)
    checkpoint = saved(claim, "1")
    await checkpoints.put(checkpoint, attempt=1, token=claim.token)
    first = [PendingWrite("t", 0, "p", "c", "k", b"a"), PendingWrite("t", -1, "p", "error", "k", b"a")]
    again = [each._replace(value=b"b") for each in first]
    for writes in (first, again):
        await checkpoints.put_writes(checkpoint.name, writes, attempt=1, token=claim.token)

    found = await checkpoints.get(checkpoint.name)

    assert found is not None
    assert found.writes == (again[1], first[0])


async def test_a_fenced_attempt_adds_nothing(world: World) -> None:
    _, claim, checkpoints = await running(world)
    stale = claim.token + 1

    with pytest.raises(LeaseLost):
        await checkpoints.put(saved(claim, "1"), attempt=1, token=stale)
    with pytest.raises(LeaseLost):
        await checkpoints.put_writes(saved(claim, "1").name, [], attempt=1, token=stale)

    assert await world.rows("SELECT count(*) FROM graph_checkpoints") == [(0,)]


@pytest.mark.parametrize(("on_crash", "left"), [(OnCrash.RESUME, 1), (OnCrash.RERUN, 0)])
async def test_a_run_that_starts_afresh_after_a_crash_finds_nothing_of_the_first(
    world: World, on_crash: OnCrash, left: int
) -> None:
    home, claim, checkpoints = await running(world, on_crash)
    checkpoint = saved(claim, "1")
    await checkpoints.put(checkpoint, attempt=1, token=claim.token)
    write = PendingWrite("t", 0, "p", "c", "k", b"a")
    await checkpoints.put_writes(checkpoint.name, [write], attempt=1, token=claim.token)
    world.clock.advance(40)

    await home.executions.execute(home.asks(on_crash=on_crash))

    for table in ("graph_checkpoints", "graph_checkpoint_writes"):
        assert await world.rows(f"SELECT count(*) FROM {table}") == [(left,)]
