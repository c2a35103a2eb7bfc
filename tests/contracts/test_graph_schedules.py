"""Schedules of graphs: each has a grant from the moment it is saved, and an account that could pay."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from duly import every
from duly.bootstrap import Queue
from duly.domain.billing import PaymentRequired, UnknownPrice
from duly.domain.declarations import Declared, Reconciled
from duly.domain.errors import InvalidInput
from duly.domain.grants import EVERY_GRAPH, Grant, GrantRevoked, GrantTooNarrow
from duly.domain.graph_targets import grant_of
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.schedules import Schedule, ScheduleExists, ScheduleState, Target, UnknownSchedule
from tests.contracts.forgetful import forgetful
from tests.contracts.purse import Purse
from tests.contracts.world import WIDE, World

PAID, FREE = "gpt-4o", "ollama:llama3"
HOURLY = every("1h")


def graph(name: str = "python:news", model: str | None = None, **params: Any) -> Target:
    given: Mapping[str, Any] = {} if model is None else {"model": model}
    return Target(kind="graph.run", params={"graph_id": name, "input": given, **params}, pool=WIDE)


async def saved(queue: Queue, target: Target, schedule_id: str = "news", owner: str = "ann") -> Schedule:
    return await queue.schedules.create(owner=owner, schedule_id=schedule_id, cadence=HOURLY, target=target)


async def grant_in(world: World, schedule: Schedule) -> Grant:
    """Named by the target and noted beside the schedule alike."""
    grant = await world.queue.grants.of_schedule(schedule.id, owner="ann")
    assert grant is not None
    assert grant.id == grant_of(schedule.target)
    return grant


@pytest.mark.req("GRAPH-02")
async def test_a_graphs_schedule_is_saved_with_a_grant_of_its_owners_for_exactly_that_graph(world: World) -> None:
    schedule = await saved(world.queue, graph())

    grant = await grant_in(world, schedule)
    (account,) = await world.queue.accounts.list(owner="ann")
    assert (grant.user_id, grant.account_id, grant.scopes) == ("ann", account.id, ("graph:execute:python:news",))
    assert (await world.queue.accounts.default_key(account.id, owner="ann")).is_default
    assert (await world.queue.grants.blast_radius(grant.id, owner="ann")).schedules == [schedule.id]
    await world.queue.schedules.create(owner="ann", cadence=HOURLY, target=Target(kind="work", pool=WIDE))
    rows = await world.rows("SELECT graph_id, execution_grant_id FROM schedules ORDER BY graph_id IS NULL")
    assert rows == [("python:news", grant.id), (None, None)]


@pytest.mark.req("GRAPH-02")
async def test_edits_keep_the_grant_that_serves_and_another_graph_gets_another(world: World) -> None:
    schedule = await saved(world.queue, graph())
    first = await grant_in(world, schedule)

    kept = await world.queue.schedules.edit("news", owner="ann", target=graph(model=FREE))
    other = await world.queue.schedules.edit("news", owner="ann", target=graph("python:other"))

    assert grant_of(kept.target) == first.id
    second = await grant_in(world, other)
    assert (second.scopes, second.id == first.id) == (("graph:execute:python:other",), False)
    none = await world.queue.schedules.edit("news", owner="ann", target=Target(kind="work", pool=WIDE))
    assert grant_of(none.target) is None
    assert await world.queue.grants.of_schedule("news", owner="ann") is None
    assert (await world.queue.grants.get(first.id, owner="ann")).revoked_at is None, "what was opened runs under it"


@pytest.mark.req("GRAPH-02")
async def test_a_grant_may_be_named(world: World) -> None:
    purse = await Purse.with_(world)
    named = await world.queue.grants.create(owner="ann", account_id=purse.account.id, scopes=[EVERY_GRAPH])

    schedule = await saved(world.queue, graph(grant_id=named.id))

    assert (await grant_in(world, schedule)).id == named.id
    assert len(await world.queue.grants.list(owner=None)) == 1


@pytest.mark.req("GRAPH-02", error=True)
async def test_a_grant_of_another_a_revoked_and_a_narrow_one_are_refused_and_nothing_is_saved(world: World) -> None:
    purse, hers = await Purse.with_(world), await Purse.with_(world, owner="bob")
    grants = world.queue.grants
    bobs = await grants.create(owner="bob", account_id=hers.account.id, scopes=[EVERY_GRAPH])
    revoked = await grants.create(owner="ann", account_id=purse.account.id, scopes=[EVERY_GRAPH])
    await grants.revoke(revoked.id, owner="ann")
    narrow = await grants.create(owner="ann", account_id=purse.account.id, scopes=["graph:execute:python:other"])
    refusals: list[tuple[str, type[Exception]]] = [
        (bobs.id, InvalidInput),
        ("grant_nowhere", InvalidInput),
        (revoked.id, GrantRevoked),
        (narrow.id, GrantTooNarrow),
    ]

    for grant_id, refusal in refusals:
        with pytest.raises(refusal):
            await saved(world.queue, graph(grant_id=grant_id))

    with pytest.raises(UnknownSchedule):
        await world.queue.schedules.get("news", owner=None)
    assert len(await grants.list(owner=None)) == 3


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_paid_model_on_an_empty_account_is_refused_and_nothing_is_saved_but_the_account(world: World) -> None:
    with pytest.raises(PaymentRequired) as refused:
        await saved(world.queue, graph(model=PAID))

    (account,) = await world.queue.accounts.list(owner="ann")
    assert refused.value.account_id == account.id
    assert all(word in str(refused.value) for word in (PAID, account.id, "0.00 available", "duly account credit"))
    assert await world.queue.grants.list(owner=None) == []
    with pytest.raises(UnknownSchedule):
        await world.queue.schedules.get("news", owner=None)
    await world.queue.accounts.credit(account.id, amount=1, key="first")
    assert (await saved(world.queue, graph(model=PAID))).state is ScheduleState.ACTIVE


@pytest.mark.req("GRAPH-06")
async def test_free_models_and_none_pass_on_an_empty_account(world: World) -> None:
    await saved(world.queue, graph(), "none")
    await saved(world.queue, graph(model=FREE), "free")
    await saved(world.queue, graph(model="default"), "default")

    assert len(await world.queue.accounts.list(owner="ann")) == 1


@pytest.mark.req("GRAPH-06", error=True)
async def test_an_edit_is_gated_and_a_pause_never(world: World) -> None:
    purse = await Purse.with_(world, 5)
    schedules = world.queue.schedules
    await saved(world.queue, graph(model=PAID))
    await saved(world.queue, graph(), "free")
    await purse.hold(5)

    with pytest.raises(PaymentRequired):
        await schedules.edit("news", owner="ann", cadence=every("1m"))
    with pytest.raises(PaymentRequired):
        await schedules.edit("free", owner="ann", target=graph(model=PAID))
    with pytest.raises(PaymentRequired):
        await schedules.upsert("fresh", owner="ann", cadence=HOURLY, target=graph(model=PAID))
    with pytest.raises(UnknownPrice):
        await schedules.edit("free", owner="ann", target=graph(model="nobody:sells-this"))

    assert (await schedules.get("news", owner="ann")).revision == 1
    assert (await schedules.edit("news", owner="ann", enabled=False)).state is ScheduleState.PAUSED
    assert (await schedules.resume("news", owner="ann")).state is ScheduleState.ACTIVE
    assert (await schedules.delete("news", owner="ann")).state is ScheduleState.DELETED


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_program_that_declares_a_paid_model_is_refused_once_and_not_when_it_starts_again(world: World) -> None:
    declared = Declared(id="news", cadence=HOURLY, target=graph(model=PAID))
    with pytest.raises(PaymentRequired):
        await world.queue.declarations.reconcile("letters", [declared], owner="ann")
    (account,) = await world.queue.accounts.list(owner="ann")
    await world.queue.accounts.credit(account.id, amount=5, key="first")

    made = await world.queue.declarations.reconcile("letters", [declared], owner="ann")
    await world.queue.money.hold("run", 1, account_id=account.id, amount=5)

    assert made == Reconciled(created=(ScheduleId("news"),))
    again = await world.queue.declarations.reconcile("letters", [declared], owner="ann")
    assert again == Reconciled(unchanged=(ScheduleId("news"),))


@pytest.mark.req("GRAPH-02", error=True)
async def test_revoked_stays_revoked_when_the_program_starts_again_and_not_when_somebody_saves(world: World) -> None:
    declared = Declared(id="news", cadence=HOURLY, target=graph())
    await world.queue.declarations.reconcile("letters", [declared], owner="ann")
    schedule = await world.queue.schedules.get("news", owner="ann")
    first = await grant_in(world, schedule)
    await world.queue.grants.revoke(first.id, owner="ann")

    for dry_run in (True, False):
        again = await world.queue.declarations.reconcile("letters", [declared], owner="ann", dry_run=dry_run)
        assert again == Reconciled(unchanged=(ScheduleId("news"),))
    faster = Declared(id="news", cadence=every("1m"), target=graph())
    await world.queue.declarations.reconcile("letters", [faster], owner="ann")
    assert (await grant_in(world, await world.queue.schedules.get("news", owner="ann"))).id == first.id

    mended = await world.queue.schedules.edit("news", owner="ann", target=graph())
    assert (await grant_in(world, mended)).id != first.id


@pytest.mark.req("GRAPH-02")
async def test_deleting_leaves_the_grant_and_the_same_id_goes_on_with_it(world: World) -> None:
    first = await grant_in(world, await saved(world.queue, graph()))
    world.clock.advance(1)
    await world.queue.schedules.delete("news", owner="ann")

    assert (await world.queue.grants.get(first.id, owner="ann")).revoked_at is None
    assert (await world.queue.grants.blast_radius(first.id, owner="ann")).schedules == []
    world.clock.advance(1)
    assert (await grant_in(world, await saved(world.queue, graph()))).id == first.id


async def test_an_expired_grant_is_replaced_when_the_schedule_is_saved_again(world: World) -> None:
    purse = await Purse.with_(world)
    until = Instant(world.clock.now() + SECOND)
    short = await world.queue.grants.create(
        owner="ann", account_id=purse.account.id, scopes=[EVERY_GRAPH], expires_at=until
    )
    await saved(world.queue, graph(grant_id=short.id))
    world.clock.advance(2)

    again = await world.queue.schedules.edit("news", owner="ann", target=graph())

    assert (await grant_in(world, again)).id != short.id


async def test_a_save_whose_answer_was_lost_mints_one_grant(world: World) -> None:
    queue = forgetful(world)

    schedule = await saved(queue, graph())
    edited = await queue.schedules.edit("news", owner="ann", target=graph("python:other"))
    declared = Declared(id="declared", cadence=HOURLY, target=graph())
    made = await queue.declarations.reconcile("letters", [declared], owner="ann")

    assert (schedule.revision, edited.revision, made.created) == (1, 2, (ScheduleId("declared"),))
    assert len(await queue.grants.list(owner="ann")) == 3
    assert len(await queue.accounts.list(owner="ann")) == 1


async def test_however_many_save_at_once_there_is_one_first_account(world: World) -> None:
    await asyncio.gather(*(saved(world.queue, graph(), f"news-{n}") for n in range(10)))

    (account,) = await world.queue.accounts.list(owner="ann")
    assert {grant.account_id for grant in await world.queue.grants.list(owner="ann")} == {account.id}


async def test_the_grant_of_a_graph_is_changed_with_its_target_and_not_beside_it(world: World) -> None:
    first = await grant_in(world, await saved(world.queue, graph()))

    for grant_id in (first.id, None):
        with pytest.raises(InvalidInput, match="edit the grant_id"):
            await world.queue.grants.assign("news", grant_id, owner="ann")

    assert await world.queue.grants.of_schedule("news", owner="ann") == first


async def test_a_taken_id_mints_nothing(world: World) -> None:
    await saved(world.queue, graph())

    for owner in ("ann", "bob"):
        with pytest.raises(ScheduleExists):
            await saved(world.queue, graph("python:other"), owner=owner)

    assert len(await world.queue.grants.list(owner=None)) == 1


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "params.graph_id"),
        ({"graph_id": "nothing"}, "graph_id"),
        ({"graph_id": "python:news", "input": [1]}, "params.input"),
        ({"graph_id": "python:news", "input": {"model": 7}}, "input.model"),
        ({"graph_id": "python:news", "max_cost": "-1"}, "params.max_cost"),
        ({"graph_id": "python:news", "max_cost": "NaN"}, "params.max_cost"),
        ({"graph_id": "python:news", "max_cost": "1e3"}, "params.max_cost"),
        ({"graph_id": "python:news", "max_cost": "99999999999"}, "params.max_cost"),
        ({"graph_id": "python:news", "grant_id": 5}, "params.grant_id"),
        ({"graph_id": "python:news", "key": "another's:2026-01-01T00:00:00Z"}, "params.key"),
        ({"graph_id": "python:news", "on_crash": "pray"}, "params.on_crash"),
        ({"graph_id": "python:news", "timeout_ms": "soon"}, "timeout_ms"),
        ({"graph_id": "python:news", "review_within_ms": 0}, "review_within_ms"),
        ({"graph_id": "python:news", "review_default": "shrug"}, "params.review_default"),
        ({"graph_id": "python:news", "review_default": "edit"}, "review_value"),
        ({"graph_id": "python:news", "grnat_id": "grant_1"}, "params.grnat_id"),
    ],
)
async def test_what_no_run_could_mean_is_refused_when_it_is_saved(
    world: World, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await saved(world.queue, Target(kind="graph.run", params=params, pool=WIDE))

    assert refused.value.field == field
