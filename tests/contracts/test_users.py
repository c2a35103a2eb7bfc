"""Users: everything owned points to one, and they are there as soon as somebody owns something."""

import pytest

from duly import every
from duly.domain.grants import EVERY_GRAPH, Grant
from duly.domain.ids import AccountId, GrantId, Owner
from duly.domain.schedules import Target
from duly.domain.tokens import Role
from duly.ports.storage import Transaction
from tests.contracts.purse import Purse
from tests.contracts.world import WIDE, World

_OWNED = (
    "INSERT INTO billing_accounts VALUES ('acct_1', 'nobody', 'main', 'USD', 0, 0, 0, 0, 0, 1)",
    "INSERT INTO execution_grants VALUES ('grant_1', 'nobody', '{account}', 'graph:execute:*', NULL, NULL, 1, NULL)",
    "INSERT INTO schedules ({names}) SELECT {columns} FROM schedules",
)


@pytest.mark.req("GRAPH-15")
async def test_whoever_owns_something_is_a_user(world: World) -> None:
    await world.queue.tokens.create(owner="ann", role=Role.VIEWER)
    await world.queue.schedules.create(owner="bob", cadence=every("1h"), target=Target(kind="work", pool=WIDE))
    purse = await Purse.with_(world, owner="cid")
    await world.queue.grants.create(owner=None, account_id=purse.account.id, scopes=[EVERY_GRAPH], user_id="dan")
    await Purse.with_(world, owner="cid")

    assert sorted(row[0] for row in await world.rows("SELECT id FROM users")) == ["ann", "bob", "cid", "dan"]


@pytest.mark.req("GRAPH-15", error=True)
@pytest.mark.req("GRAPH-02", error=True)
async def test_nothing_is_owned_by_nobody(world: World) -> None:
    purse = await Purse.with_(world)
    await world.queue.schedules.create(owner="ann", cadence=every("1h"), target=Target(kind="work", pool=WIDE))
    names = await columns_of(world, "schedules")
    others = {"id": "'other'", "owner_user_id": "'nobody'"}
    columns = ", ".join(others.get(name, name) for name in names)

    for statement in _OWNED:
        with pytest.raises(Exception, match=r"(?i)foreign.key"):
            await world.rows(statement.format(account=purse.account.id, names=", ".join(names), columns=columns))


@pytest.mark.req("GRAPH-15", error=True)
async def test_a_grant_needs_an_account_that_is_there(world: World) -> None:
    grant = Grant(
        id=GrantId("grant_1"),
        user_id=Owner("ann"),
        account_id=AccountId("acct_nowhere"),
        scopes=(EVERY_GRAPH,),
        created_at=world.clock.now(),
    )

    async def work(tx: Transaction) -> None:
        await tx.grants.add(grant)

    with pytest.raises(Exception, match=r"(?i)foreign.key"):
        await world.queue.storage.transact(work)
    assert await world.queue.grants.list(owner=None) == []


async def columns_of(world: World, table: str) -> list[str]:
    if world.store == "sqlite":
        return [row[1] for row in await world.rows(f"PRAGMA table_info({table})")]
    where = f"table_name = '{table}' AND is_generated = 'NEVER'"
    rows = await world.rows(f"SELECT column_name FROM information_schema.columns WHERE {where}")
    return [row[0] for row in rows]
