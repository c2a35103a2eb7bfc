"""Tokens: a secret is shown once and kept as its hash; whoever has none that is good is told nothing more."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Instant
from duly.domain.tokens import SECRET_PREFIX, Caller, Role, Unauthenticated, UnknownToken, hash_of
from tests.contracts.meanwhile import interrupted
from tests.contracts.world import World


async def test_whoever_has_a_secret_is_who_its_token_says(world: World) -> None:
    token, secret = await world.queue.tokens.create(owner="ann", role=Role.OPERATOR, name="laptop")

    caller = await world.queue.tokens.authenticate(secret)

    assert caller == Caller(owner=token.owner, role=Role.OPERATOR, token_id=token.id)
    assert (token.id[:4], token.name, token.created_at) == ("tok_", "laptop", world.clock.now())


async def test_the_secret_is_kept_nowhere_and_its_hash_is(world: World) -> None:
    token, secret = await world.queue.tokens.create(owner="ann", role=Role.VIEWER)
    _, another = await world.queue.tokens.create(owner="ann", role=Role.VIEWER)

    rows = await world.rows("SELECT * FROM api_tokens")

    stored = [str(value) for row in rows for value in row]
    assert not [value for value in stored if secret.removeprefix(SECRET_PREFIX) in value]
    assert hash_of(secret) in stored
    assert secret.startswith(SECRET_PREFIX)
    assert len(secret) >= len(SECRET_PREFIX) + 43
    assert secret != another
    assert secret not in repr(token)


async def test_unknown_expired_and_revoked_secrets_are_refused_alike(world: World) -> None:
    tokens = world.queue.tokens
    soon = Instant(world.clock.now() + 10 * SECOND)
    _, expired = await tokens.create(owner="ann", role=Role.ADMIN, expires_at=soon)
    gone, revoked = await tokens.create(owner="ann", role=Role.ADMIN)
    assert (await tokens.authenticate(expired)).owner == "ann"
    assert (await tokens.authenticate(revoked)).owner == "ann"
    await tokens.revoke(gone.id, owner="ann")
    world.clock.advance(10)

    said = set()
    for secret in (expired, revoked, "duly_unknown", "", "\udc80 no text"):
        with pytest.raises(Unauthenticated) as refusal:
            await tokens.authenticate(secret)
        said.add((str(refusal.value), refusal.value.code))

    assert len(said) == 1


async def test_a_token_that_expires_is_refused_from_that_instant_on_though_it_is_remembered(world: World) -> None:
    soon = Instant(world.clock.now() + 2 * SECOND)
    _, secret = await world.queue.tokens.create(owner="ann", role=Role.ADMIN, expires_at=soon)
    world.clock.advance(1.9)
    await world.queue.tokens.authenticate(secret)
    world.clock.advance(0.1)

    with pytest.raises(Unauthenticated):
        await world.queue.tokens.authenticate(secret)


async def test_revoking_is_heard_here_at_once_and_elsewhere_within_five_seconds(world: World) -> None:
    here, elsewhere = world.queue.tokens, (await world.another()).tokens
    token, secret = await here.create(owner="ann", role=Role.ADMIN)
    for place in (here, elsewhere):
        await place.authenticate(secret)

    await here.revoke(token.id, owner=None)

    with pytest.raises(Unauthenticated):
        await here.authenticate(secret)
    world.clock.advance(5)
    with pytest.raises(Unauthenticated):
        await elsewhere.authenticate(secret)


async def test_what_was_read_before_a_revocation_is_not_remembered_after_it(world: World) -> None:
    queue, storage = interrupted(world)
    token, secret = await queue.tokens.create(owner="ann", role=Role.ADMIN)

    storage.happens = lambda: queue.tokens.revoke(token.id, owner="ann")
    await queue.tokens.authenticate(secret)

    assert storage.happens is None
    with pytest.raises(Unauthenticated):
        await queue.tokens.authenticate(secret)


async def test_a_busy_caller_is_not_looked_up_each_time(world: World) -> None:
    token, secret = await world.queue.tokens.create(owner="ann", role=Role.ADMIN)
    await world.queue.tokens.authenticate(secret)
    await world.rows("DELETE FROM api_tokens")

    world.clock.advance(4.9)
    assert (await world.queue.tokens.authenticate(secret)).token_id == token.id
    world.clock.advance(0.1)
    with pytest.raises(Unauthenticated):
        await world.queue.tokens.authenticate(secret)


async def test_revoking_again_keeps_the_first_time_and_the_token_on_the_list(world: World) -> None:
    token, _ = await world.queue.tokens.create(owner="ann", role=Role.ADMIN)
    revoked = await world.queue.tokens.revoke(token.id, owner="ann")
    world.clock.advance(60)

    assert await world.queue.tokens.revoke(token.id, owner=None) == revoked
    assert revoked.revoked_at == world.clock.now() - 60 * SECOND
    assert await world.queue.tokens.list(owner="ann") == [revoked]


async def test_somebody_elses_token_is_not_there(world: World) -> None:
    token, secret = await world.queue.tokens.create(owner="ann", role=Role.ADMIN)
    bobs, _ = await world.queue.tokens.create(owner="bob", role=Role.VIEWER)

    for refused in (token.id, "tok_nowhere"):
        with pytest.raises(UnknownToken):
            await world.queue.tokens.revoke(refused, owner="bob")
    assert [each.id for each in await world.queue.tokens.list(owner="bob")] == [bobs.id]
    assert {each.id for each in await world.queue.tokens.list(owner=None)} == {token.id, bobs.id}
    assert (await world.queue.tokens.authenticate(secret)).token_id == token.id


async def test_when_a_token_was_last_used_is_written_once_a_minute(world: World) -> None:
    _, secret = await world.queue.tokens.create(owner="ann", role=Role.ADMIN)
    began, used = world.clock.now(), []
    for _ in range(14):
        await world.queue.tokens.authenticate(secret)
        used.append((await world.queue.tokens.list(owner="ann"))[0].last_used_at)
        world.clock.advance(6)

    assert sorted({at - began for at in used if at is not None}) == [0, 60 * SECOND]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"owner": ""}, "owner"),
        ({"role": "root"}, "role"),
        ({"name": "two\nlines"}, "name"),
        ({"expires_at": 0}, "expires_at"),
        ({"expires_at": 2**63}, "expires_at"),
    ],
)
async def test_a_token_that_cannot_be_meant_is_refused(world: World, given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await world.queue.tokens.create(**{"owner": "ann", "role": Role.VIEWER, **given})  # type: ignore[arg-type]

    assert refusal.value.field == field
    assert await world.rows("SELECT 1 FROM api_tokens") == []
