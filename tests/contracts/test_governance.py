"""System schedules are what a file says, all of them or none, and the report is true even if its answer was lost."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from duly import every, once
from duly.domain.declarations import Declaration
from duly.domain.errors import InvalidInput
from duly.domain.governance import (
    ACCOUNT,
    MOST_GOVERNED,
    REMOVED,
    SWITCHED_OFF,
    Fate,
    GovernanceTaken,
    Governed,
    Synced,
)
from duly.domain.ids import Owner, PoolName, ScheduleId
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.payloads import payload_of, value_of
from duly.domain.schedules import SYSTEM, Schedule, ScheduleState, Target, UnknownSchedule
from duly.ports.storage import Transaction
from tests.contracts.forgetful import forgetful
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, World

GRAPH = "python:govern"


def job(name: str, minutes: int = 5, *, params: dict[str, Any] | None = None, **rest: Any) -> Governed:
    target = Target(kind="work", pool=WIDE, payload=payload_of(params, field="input"))
    return Governed(name=name, cadence=every(f"{minutes}m"), target=target, **rest)


def graph(name: str, **given: Any) -> Governed:
    params = {"graph_id": GRAPH, "input": given, "on_crash": "resume"}
    target = Target(kind="graph.run", pool=PoolName("graphs"), payload=payload_of(params, field="input"))
    return Governed(name=name, cadence=every("5m"), target=target, graph_id=GRAPH)


async def synced(world: World, *governed: Governed, **rest: Any) -> dict[str, Synced]:
    return {line.id.partition(":")[2]: line for line in await world.queue.governance.sync(governed, **rest)}


def fates(lines: dict[str, Synced]) -> dict[str, str]:
    return {name: line.fate.value for name, line in lines.items()}


async def get(world: World, name: str) -> Schedule:
    return await world.queue.schedules.get(f"governance:{name}", owner="system")


async def tables(world: World) -> list[list[tuple[Any, ...]]]:
    names = ("schedules", "schedule_revisions", "declared_schedules", "billing_accounts", "execution_grants")
    return [await world.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in names]


@pytest.mark.req("GRAPH-28")
async def test_absent_ones_are_created_drifted_ones_updated_alike_ones_left_and_removed_ones_paused(
    world: World,
) -> None:
    assert fates(await synced(world, job("c"), job("a"), job("b"))) == dict.fromkeys("abc", "created")
    world.clock.advance(1)
    alike = await get(world, "a")

    lines = await synced(world, job("a"), job("b", 7), job("d"))

    assert fates(lines) == {"a": "unchanged", "b": "updated", "c": "paused", "d": "created"}
    assert await get(world, "a") == alike
    assert (lines["b"].before or alike).cadence == every("5m")
    assert (lines["b"].after, lines["b"].after.cadence) == (await get(world, "b"), every("7m"))
    paused = await get(world, "c")
    assert (paused.state, paused.state_reason, paused.owner) == (ScheduleState.PAUSED, REMOVED, SYSTEM)
    # What is paused already is no news.
    assert fates(await synced(world, job("a"), job("b", 7), job("d"))) == dict.fromkeys("abd", "unchanged")


async def test_the_same_again_writes_nothing_in_whatever_order_the_names_of_an_input_stand(world: World) -> None:
    await synced(world, job("a", params={"x": 1, "y": 2}), graph("g", topic="ai"))
    before = await tables(world)
    world.clock.advance(3_600)

    lines = await synced(world, graph("g", topic="ai"), job("a", params={"y": 2, "x": 1}))

    assert fates(lines) == {"a": "unchanged", "g": "unchanged"}
    assert await tables(world) == before


async def test_a_dry_run_says_the_same_and_writes_nothing(world: World) -> None:
    await synced(world, job("a"), job("b"), job("c"))
    before = await tables(world)
    given = (job("a"), job("b", 7), graph("d"))

    said = await synced(world, *given, dry_run=True)

    assert await tables(world) == before
    assert fates(said) == fates(await synced(world, *given))


async def test_what_a_sync_paused_comes_back_with_the_file_and_what_a_person_paused_does_not(world: World) -> None:
    await synced(world, job("a"), job("b"))
    await world.queue.schedules.pause("governance:b", owner=None)
    await synced(world, job("b"))

    lines = await synced(world, job("a"), job("b"))

    assert fates(lines) == {"a": "updated", "b": "unchanged"}
    assert ((await get(world, "a")).state, (await get(world, "b")).state) == (
        ScheduleState.ACTIVE,
        ScheduleState.PAUSED,
    )
    assert (lines["a"].is_held, lines["b"].is_held) == (False, True)
    assert fates(await synced(world, job("a"), job("b", enabled=True))) == {"a": "unchanged", "b": "updated"}
    assert (await get(world, "b")).state is ScheduleState.ACTIVE


async def test_a_file_can_switch_a_schedule_off_and_on_again(world: World) -> None:
    first = await synced(world, job("a", enabled=False))
    assert (first["a"].fate, first["a"].after.state_reason) == (Fate.CREATED, SWITCHED_OFF)
    assert fates(await synced(world, job("a", enabled=False))) == {"a": "unchanged"}

    assert fates(await synced(world, job("a"))) == {"a": "updated"}
    assert (await get(world, "a")).state is ScheduleState.ACTIVE
    assert fates(await synced(world, job("a", enabled=False))) == {"a": "updated"}
    assert (await get(world, "a")).next_slot is None


async def test_what_was_changed_or_deleted_by_hand_is_as_the_file_says_again(world: World) -> None:
    await synced(world, job("a"), job("b"))
    await world.queue.schedules.edit("governance:a", owner=None, cadence=every("9m"))
    await world.queue.schedules.delete("governance:b", owner=None)

    assert fates(await synced(world, job("a"), job("b"))) == {"a": "updated", "b": "created"}
    assert ((await get(world, "a")).cadence, (await get(world, "b")).revision) == (every("5m"), 3)


@pytest.mark.req("GRAPH-28", error=True)
async def test_a_sync_that_fails_in_the_middle_has_done_nothing(world: World) -> None:
    await synced(world, job("a"), job("z"))
    before = await tables(world)
    nowhere = Governed(name="m", cadence=every("5m"), target=Target(kind="work", pool=PoolName("nowhere")))
    over = Governed(name="m", cadence=once(moment_of(Instant(world.clock.now() - SECOND))), target=Target(kind="work"))

    for bad, field in ((nowhere, "schedules.m.pool"), (over, "schedules.m")):
        with pytest.raises(InvalidInput) as refused:
            await synced(world, job("a", 7), job("b"), graph("g"), bad)
        assert (refused.value.field, bool(refused.value.fix)) == (field, True)

    assert await tables(world) == before


@pytest.mark.req("GRAPH-28", error=True)
async def test_their_ids_are_nobody_elses(world: World) -> None:
    with pytest.raises(InvalidInput, match="governance:"):
        await Keeping(world).schedule("governance:a", owner="ann")
    await synced(world, job("a"))

    with pytest.raises(UnknownSchedule):
        await world.queue.schedules.pause("governance:a", owner="ann")
    with pytest.raises(InvalidInput, match="governance:"):
        await world.queue.schedules.upsert(
            "governance:a", owner="ann", cadence=every("1h"), target=Target(kind="mine", pool=WIDE)
        )


@pytest.mark.req("GRAPH-28", error=True)
@pytest.mark.parametrize("owner", ["ann", "system"])
async def test_what_somebody_else_has_under_such_an_id_stops_the_whole_sync(world: World, owner: str) -> None:
    """From before these ids were kept, or declared by a program in the system's name."""
    theirs = replace(await Keeping(world).schedule("theirs"), id=ScheduleId("governance:theirs"), owner=Owner(owner))

    async def work(tx: Transaction) -> None:
        await tx.schedules.add(theirs)
        await tx.declarations.save(Declaration(schedule_id=theirs.id, owner=theirs.owner, program="letters"))

    await world.queue.storage.transact(work)
    before = await tables(world)

    with pytest.raises(GovernanceTaken):
        await synced(world, job("a"), job("theirs", 7))

    assert await tables(world) == before


async def test_two_of_a_name_and_too_many_are_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="twice"):
        await synced(world, job("a"), job("a", 7))
    with pytest.raises(InvalidInput, match="at most"):
        await synced(world, *(job(f"n{number}") for number in range(MOST_GOVERNED + 1)))
    assert await world.queue.schedules.list(owner=None) == []


async def test_a_graph_runs_under_a_grant_of_the_systems_account_and_a_revoked_one_is_replaced(world: World) -> None:
    await synced(world, graph("g", topic="ai"), graph("h"), job("a"))

    first = await world.queue.grants.of_schedule("governance:g", owner="system")
    assert first is not None
    assert (first.account_id, first.user_id, first.scopes) == (ACCOUNT, SYSTEM, (f"graph:execute:{GRAPH}",))
    params = value_of((await get(world, "g")).target.payload)
    assert (params["grant_id"], params["input"]) == (first.id, {"topic": "ai"})
    assert (await world.queue.accounts.default_key(ACCOUNT, owner="system")).is_default
    assert [account.id for account in await world.queue.accounts.list(owner="system")] == [ACCOUNT]
    assert await world.queue.grants.of_schedule("governance:a", owner="system") is None

    await world.queue.grants.revoke(first.id, owner=None)
    assert fates(await synced(world, graph("g", topic="ai"), graph("h"), job("a")))["g"] == "updated"
    second = await world.queue.grants.of_schedule("governance:g", owner="system")
    assert second is not None
    assert second.id == value_of((await get(world, "g")).target.payload)["grant_id"] != first.id


async def test_a_lost_answer_changes_neither_the_report_nor_what_was_done(world: World) -> None:
    queue = forgetful(world)
    first = await queue.governance.sync([job("a"), graph("g"), job("c")])
    world.clock.advance(1)
    second = await queue.governance.sync([job("a", 7), graph("g")])

    assert [line.fate for line in first] == [Fate.CREATED] * 3
    assert [(line.id, line.fate.value) for line in second] == [
        ("governance:a", "updated"),
        ("governance:c", "paused"),
        ("governance:g", "unchanged"),
    ]
    assert (await get(world, "a")).revision == 2
    assert len(await world.queue.grants.list(owner="system")) == 1


async def test_two_syncs_at_once_end_as_one(world: World) -> None:
    other = await world.another()
    given = [job(f"n{number}") for number in range(8)] + [graph("g")]

    lines = await asyncio.gather(world.queue.governance.sync(given), other.governance.sync(list(reversed(given))))

    fates_of = [sorted({line.fate.value for line in each}) for each in lines]
    assert sorted(fates_of) == [["created"], ["unchanged"]]
    assert {each.revision for each in await world.queue.schedules.list(owner="system")} == {1}
    assert len(await world.queue.grants.list(owner="system")) == 1


async def test_slots_that_were_due_before_an_update_are_opened_first(world: World) -> None:
    keeping = Keeping(world)
    await synced(world, job("a", 1))
    await keeping.alive_until(1.5)

    await synced(world, job("a", 7))

    assert await keeping.fates("governance:a") == ["1: pending"]
    await keeping.accounts_for_every_slot("governance:a")
