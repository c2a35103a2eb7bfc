"""Grants: made for a user and an account, checked with four different refusals, revoked and never deleted."""

from typing import Any

import pytest

from duly import every
from duly.domain.billing import UnknownAccount
from duly.domain.errors import DulyError, InvalidInput
from duly.domain.grants import EVERY_GRAPH, Grant, GrantRevoked, UnknownGrant
from duly.domain.instants import SECOND, Instant
from duly.domain.schedules import Target, UnknownSchedule
from tests.contracts.purse import Purse
from tests.contracts.world import World

DIGEST = "graph:execute:dag:digest"


async def _granted(world: World, *scopes: str, **rest: Any) -> Grant:
    purse = await Purse.with_(world)
    return await world.queue.grants.create(
        owner="ann", account_id=purse.account.id, scopes=scopes or [EVERY_GRAPH], **rest
    )


async def _refusal(world: World, grant_id: str, **rest: Any) -> str:
    with pytest.raises(DulyError) as refused:
        await world.queue.grants.validate(grant_id, **rest)
    return refused.value.code


@pytest.mark.req("GRAPH-02")
@pytest.mark.req("GRAPH-03")
async def test_a_grant_names_user_account_and_scopes_and_is_good_until_it_expires(world: World) -> None:
    until = Instant(world.clock.now() + 60 * SECOND)

    grant = await _granted(world, DIGEST, expires_at=until)

    checked = await world.queue.grants.validate(grant.id, graph_id="dag:digest")
    assert grant.id.startswith("grant_")
    assert (checked.user_id, checked.account_id, checked.scopes) == ("ann", grant.account_id, (DIGEST,))
    assert checked.expires_at == until


@pytest.mark.req("GRAPH-02", error=True)
@pytest.mark.req("GRAPH-03", error=True)
async def test_unknown_expired_revoked_and_too_narrow_are_four_errors(world: World) -> None:
    expiring = await _granted(world, expires_at=Instant(world.clock.now() + SECOND))
    revoked, narrow = await _granted(world), await _granted(world, DIGEST)
    await world.queue.grants.revoke(revoked.id, owner="ann")
    world.clock.advance(1)

    assert await _refusal(world, "grant_none") == "unknown_grant"
    assert await _refusal(world, narrow.id, owner="bob") == "unknown_grant"
    assert await _refusal(world, expiring.id) == "grant_expired"
    assert await _refusal(world, revoked.id) == "grant_revoked"
    assert await _refusal(world, narrow.id, graph_id="dag:other") == "grant_scope"
    assert (await world.queue.grants.get(narrow.id, owner="ann")).last_used_at is None, "it was no use"


@pytest.mark.req("GRAPH-03")
async def test_revoking_keeps_the_grant_with_the_first_time(world: World) -> None:
    grant = await _granted(world)

    first = await world.queue.grants.revoke(grant.id, owner="ann")
    world.clock.advance(5)
    again = await world.queue.grants.revoke(grant.id, owner=None)

    assert first.revoked_at == again.revoked_at == grant.created_at
    assert [listed.id for listed in await world.queue.grants.list(owner="ann")] == [grant.id]


async def test_when_a_grant_was_used_is_noted_once_a_minute(world: World) -> None:
    grant = await _granted(world)

    await world.queue.grants.validate(grant.id)
    first = (await world.queue.grants.get(grant.id, owner="ann")).last_used_at
    world.clock.advance(59)
    await world.queue.grants.validate(grant.id)
    second = (await world.queue.grants.get(grant.id, owner="ann")).last_used_at
    world.clock.advance(1)
    await world.queue.grants.validate(grant.id)
    third = (await world.queue.grants.get(grant.id, owner="ann")).last_used_at

    assert first == second == grant.created_at
    assert third == grant.created_at + 60 * SECOND


@pytest.mark.req("GRAPH-02", error=True)
async def test_nobody_grants_at_somebody_elses_cost(world: World) -> None:
    purse = await Purse.with_(world)
    grants = world.queue.grants

    with pytest.raises(UnknownAccount):
        await grants.create(owner="bob", account_id=purse.account.id, scopes=[EVERY_GRAPH])
    with pytest.raises(InvalidInput, match="user_id"):
        await grants.create(owner="ann", user_id="bob", account_id=purse.account.id, scopes=[EVERY_GRAPH])
    with pytest.raises(InvalidInput, match="expires_at"):
        await _granted(world, expires_at=world.clock.now())

    by_operator = await grants.create(owner=None, user_id="bob", account_id=purse.account.id, scopes=[DIGEST])
    assert by_operator.user_id == "bob"
    assert (await grants.create(owner=None, account_id=purse.account.id, scopes=[DIGEST])).user_id == "ann"


async def test_somebody_elses_grant_does_not_exist(world: World) -> None:
    grant = await _granted(world)
    grants = world.queue.grants

    assert await grants.list(owner="bob") == []
    for asked in (
        grants.get(grant.id, owner="bob"),
        grants.revoke(grant.id, owner="bob"),
        grants.blast_radius(grant.id, owner="bob"),
    ):
        with pytest.raises(UnknownGrant):
            await asked
    assert (await grants.get(grant.id, owner=None)).revoked_at is None


# Which schedules act under it.


async def _schedule(world: World, schedule_id: str, owner: str = "ann") -> None:
    await world.queue.schedules.create(
        owner=owner, schedule_id=schedule_id, cadence=every("1h"), target=Target(kind="work")
    )


async def test_the_schedules_that_stop_with_a_grant_are_those_that_are_active(world: World) -> None:
    grant, grants = await _granted(world), world.queue.grants
    for schedule_id in ("b", "a", "paused", "freed", "deleted"):
        await _schedule(world, schedule_id)
        await grants.assign(schedule_id, grant.id, owner="ann")
    await _schedule(world, "without")
    await grants.assign("freed", None, owner="ann")
    await world.queue.schedules.pause("paused", owner="ann")
    await world.queue.schedules.delete("deleted", owner="ann")
    await world.queue.schedules.edit("b", owner="ann", cadence=every("2h"))

    radius = await grants.blast_radius(grant.id, owner="ann")

    assert (radius.grant.id, list(radius.schedules)) == (grant.id, ["a", "b"])
    assert (await grants.of_schedule("b", owner="ann")) == grant
    assert (await grants.of_schedule("freed", owner="ann")) is None


@pytest.mark.req("GRAPH-03", error=True)
async def test_a_schedule_acts_under_no_grant_but_its_owners_good_ones(world: World) -> None:
    grant, grants = await _granted(world), world.queue.grants
    await _schedule(world, "anns")
    await _schedule(world, "bobs", owner="bob")

    with pytest.raises(UnknownGrant):
        await grants.assign("bobs", grant.id, owner=None)
    with pytest.raises(UnknownSchedule):
        await grants.assign("anns", grant.id, owner="bob")
    with pytest.raises(UnknownSchedule):
        await grants.of_schedule("anns", owner="bob")
    await grants.revoke(grant.id, owner="ann")
    with pytest.raises(GrantRevoked):
        await grants.assign("anns", grant.id, owner="ann")
