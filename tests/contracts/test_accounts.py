"""Accounts: opened with a key, credited once for each key, seen by their owner, asked whether they can pay."""

import pytest

from duly.domain.amounts import MOST
from duly.domain.billing import Credit, CreditKeyReused, InsufficientCredit, Receipt, UnknownAccount, UnknownPrice
from duly.domain.errors import InvalidInput
from tests.contracts.purse import Purse
from tests.contracts.world import World

PAID = "gpt-4o"


async def test_an_account_is_opened_empty_with_a_default_key(world: World) -> None:
    purse = await Purse.with_(world)

    key = await world.queue.accounts.default_key(purse.account.id, owner="ann")

    assert purse.account.id.startswith("acct_")
    assert (key.account_id, key.is_default) == (purse.account.id, True)
    assert await purse.shown() == "0+0+0"
    assert await world.queue.accounts.get(purse.account.id, owner="ann") == purse.account


async def test_a_credit_counts_once_for_each_key(world: World) -> None:
    purse = await Purse.with_(world)

    for _ in range(3):
        await purse.credit(5, key="invoice 1")
    await purse.credit(5, key="invoice 2")

    assert await purse.shown() == "10+0+0"


async def test_another_amount_under_the_key_of_a_credit_is_refused(world: World) -> None:
    purse = await Purse.with_(world)
    await purse.credit(5, key="invoice 1")

    with pytest.raises(CreditKeyReused):
        await purse.credit(6, key="invoice 1")

    assert await purse.shown() == "5+0+0"


@pytest.mark.parametrize("amount", [0, -5, MOST + 1, 2.5, True])
async def test_what_is_no_credit_is_refused(world: World, amount: int) -> None:
    purse = await Purse.with_(world)

    with pytest.raises(InvalidInput, match="amount"):
        await purse.credit(amount, key="k")


async def test_an_account_takes_no_more_than_it_can_count(world: World) -> None:
    purse = await Purse.with_(world)
    await world.rows(f"UPDATE billing_accounts SET granted = {10**18}, available = {10**18}")
    await world.rows(
        f"INSERT INTO credits (id, billing_account_id, key, amount, created_at) "
        f"VALUES ('c', '{purse.account.id}', 'k', {10**18}, 0)"
    )

    with pytest.raises(InvalidInput, match="more than an account can take"):
        await purse.credit(1, key="one more")


async def test_somebody_elses_account_does_not_exist(world: World) -> None:
    purse = await Purse.with_(world, 5)
    accounts = world.queue.accounts
    other = await accounts.create(owner="bob", name="his")

    assert [account.id for account in await accounts.list(owner="bob")] == [other.id]
    assert len(await accounts.list(owner=None)) == 2
    assert len(await accounts.list(owner=None, most=1)) == 1
    assert [a.id for a in await accounts.list(owner=None, after=min(other.id, purse.account.id))] == [
        max(other.id, purse.account.id)
    ]
    for asked in (
        accounts.get(purse.account.id, owner="bob"),
        accounts.default_key(purse.account.id, owner="bob"),
        accounts.statement(purse.account.id, owner="bob"),
        accounts.require_payable(purse.account.id, PAID, owner="bob"),
        world.queue.money.held(purse.account.id, owner="bob"),
        accounts.credit("acct_none", amount=1, key="k"),
    ):
        with pytest.raises(UnknownAccount):
            await asked


async def test_a_statement_shows_what_came_and_went_newest_first_in_pages(world: World) -> None:
    purse = await Purse.with_(world, 10)
    world.clock.advance(1)
    await purse.hold(6)
    await purse.spend(2, "one")
    await purse.spend(None, "two")
    world.clock.advance(1)
    await purse.credit(1, key="second")
    await purse.settle()

    first = await world.queue.accounts.statement(purse.account.id, owner="ann", most=2)
    second = await world.queue.accounts.statement(purse.account.id, owner="ann", most=2, before=first.before)
    third = await world.queue.accounts.statement(purse.account.id, owner="ann", most=2, before=second.before)

    lines = [*first.lines, *second.lines, *third.lines]
    assert [type(line) for line in lines] == [Credit, Receipt, Receipt, Credit]
    assert {line.unit for line in lines if isinstance(line, Receipt)} == {"one", "two"}
    assert (first.unmetered, first.account.balance.charged) == (1, 2)
    assert third.before is None


# The gate before a schedule is made.


@pytest.mark.req("GRAPH-06")
async def test_an_account_with_money_may_plan_a_paid_model(world: World) -> None:
    purse = await Purse.with_(world, 1)

    await world.queue.accounts.require_payable(purse.account.id, PAID, owner="ann")


@pytest.mark.req("GRAPH-06")
async def test_an_empty_account_may_plan_what_costs_nothing(world: World) -> None:
    purse = await Purse.with_(world)

    await world.queue.accounts.require_payable(purse.account.id, None, owner="ann")
    await world.queue.accounts.require_payable(purse.account.id, "ollama:llama3", owner="ann")


@pytest.mark.req("GRAPH-06", error=True)
async def test_an_empty_account_may_not_plan_a_paid_model(world: World) -> None:
    purse = await Purse.with_(world)

    with pytest.raises(InsufficientCredit):
        await world.queue.accounts.require_payable(purse.account.id, PAID, owner="ann")

    await purse.credit(5, key="k")
    await purse.hold(5)
    with pytest.raises(InsufficientCredit):
        await world.queue.accounts.require_payable(purse.account.id, PAID, owner="ann")


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_model_without_a_known_price_is_not_planned(world: World) -> None:
    dollars, euros = await Purse.with_(world, 5), await Purse.with_(world, 5, currency="EUR")

    with pytest.raises(UnknownPrice):
        await world.queue.accounts.require_payable(dollars.account.id, "nobody:sells-this", owner="ann")
    with pytest.raises(UnknownPrice):
        await world.queue.accounts.require_payable(euros.account.id, PAID, owner="ann")
