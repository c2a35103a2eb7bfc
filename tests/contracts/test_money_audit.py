"""The audit of money: silent where the records agree, and loud about each thing that does not."""

from typing import Any

import pytest

from duly.domain.billing import HOLD_LEASE, MoneyLaw
from duly.domain.instants import SECOND
from tests.contracts.laws import MONEY
from tests.contracts.purse import Purse
from tests.contracts.world import World


async def _report(world: World, owner: str | None = None) -> dict[str, Any]:
    return await world.queue.money_audit.report(owner=owner)


async def _spending(world: World) -> Purse:
    purse = await Purse.with_(world, 10)
    await world.queue.budgets.set("account", purse.account.id, owner="ann", window="day", limit=9)
    await purse.hold(5, "ended")
    await purse.spend(2, run="ended")
    await purse.spend(None, "unknown", run="ended")
    await purse.settle("ended")
    await purse.hold(4, "open")
    return purse


async def test_an_account_in_order_has_no_findings(world: World) -> None:
    purse = await _spending(world)

    report = await _report(world)

    assert report == {
        "accounts": [
            {
                "account": purse.account.id,
                "currency": "USD",
                "granted": 10,
                "available": 4,
                "held": 4,
                "charged": 2,
                "overrun": 0,
                "findings": [],
            }
        ],
        "totals": {"count": 1, "found": {}, "laws_hold": True},
    }


@pytest.mark.parametrize(
    ("damage", "law"),
    [
        ("UPDATE billing_accounts SET available = available + 1, granted = granted + 1", MoneyLaw.UNBALANCED),
        ("UPDATE billing_accounts SET available = available - 1, charged = charged + 1", MoneyLaw.UNBALANCED),
        ("UPDATE billing_accounts SET held = held - 1, available = available + 1", MoneyLaw.UNBALANCED),
        ("UPDATE credits SET amount = amount + 1", MoneyLaw.UNBALANCED),
        ("DELETE FROM credits", MoneyLaw.UNBALANCED),
        ("UPDATE holds SET spent = spent + 1 WHERE run_id = 'ended'", MoneyLaw.MISCOUNTED),
        ("UPDATE holds SET unmetered = 0 WHERE run_id = 'ended'", MoneyLaw.MISCOUNTED),
        ("UPDATE charge_receipts SET amount = 3 WHERE amount = 2", MoneyLaw.MISCOUNTED),
        ("UPDATE budgets SET used = used - 1", MoneyLaw.MISCOUNTED),
        ("UPDATE holds SET amount = amount + 1 WHERE run_id = 'open'", MoneyLaw.UNBALANCED),
    ],
)
async def test_each_damage_is_found(world: World, damage: str, law: MoneyLaw) -> None:
    await _spending(world)
    await world.rows(damage)

    report = await _report(world)

    assert law in report["totals"]["found"]
    assert not report["totals"]["laws_hold"]
    await _forget(world)


async def test_a_receipt_in_another_account_than_its_hold_is_found(world: World) -> None:
    await _spending(world)
    other = await Purse.with_(world, owner="bob")
    await world.rows(f"UPDATE charge_receipts SET billing_account_id = '{other.account.id}' WHERE amount = 2")

    found = {account["account"]: account["findings"] for account in (await _report(world))["accounts"]}

    assert [finding["law"] for finding in found[other.account.id]].count(MoneyLaw.ORPHANED) == 1
    await _forget(world)


async def test_a_hold_that_outlives_its_lease_for_long_is_found(world: World) -> None:
    await _spending(world)
    world.clock.advance(2 * HOLD_LEASE / SECOND - 1)
    assert (await _report(world))["totals"]["laws_hold"]

    world.clock.advance(1)

    assert (await _report(world))["totals"]["found"] == {MoneyLaw.ORPHANED: 1}
    await world.queue.money.lapse_due()
    assert (await _report(world))["totals"]["laws_hold"]


async def test_an_owner_is_told_of_its_own_accounts_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.application.money_audit.ACCOUNTS_AT_ONCE", 2)
    purses = [await Purse.with_(world, owner="ann" if n < 5 else "bob") for n in range(6)]

    of_ann, of_all = await _report(world, "ann"), await _report(world)

    assert of_ann["totals"]["count"] == 5
    assert [account["account"] for account in of_all["accounts"]] == sorted(purse.account.id for purse in purses)


async def _forget(world: World) -> None:
    """What was damaged on purpose would break the laws that every test is held to."""
    assert any([await world.rows(sql) for sql in MONEY.values()])
    for table in ("budgets", "charge_receipts", "holds", "credits", "virtual_keys", "billing_accounts"):
        await world.rows(f"DELETE FROM {table}")
