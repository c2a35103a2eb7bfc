"""Money is held before it is spent: what holds, receipts and their ends do to an account."""

from typing import Any

import pytest

from duly.domain.billing import (
    HOLD_LEASE,
    HoldDiffers,
    HoldEnded,
    HoldState,
    InsufficientCredit,
    ReceiptDiffers,
    UnknownAccount,
    UnknownHold,
    Usage,
)
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Instant
from duly.system.prices import TablePrices
from tests.contracts.purse import Purse
from tests.contracts.world import World

CALL = Usage(model="openai:gpt-4o", input_tokens=1_000, output_tokens=100, cache_read_tokens=500)
# By whatever table is installed; that it is read rightly is shown where it is read.
CALL_COSTS = TablePrices().price(CALL, currency="USD", at=Instant(1_800_000_000 * SECOND)) or 0


async def test_what_was_held_and_not_spent_comes_back(world: World) -> None:
    purse = await Purse.with_(world, 10)

    hold = await purse.hold(6)
    assert await purse.shown() == "4+6+0"
    await purse.spend(1, "one")
    await purse.spend(3, "two")
    assert await purse.shown() == "4+6+0"
    settled = await purse.settle()

    assert (hold.state, settled.state, settled.spent) == (HoldState.HELD, HoldState.SETTLED, 4)
    assert await purse.shown() == "6+0+4"


async def test_a_hold_that_was_not_needed_is_released(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)

    assert (await purse.release()).state is HoldState.RELEASED
    assert await purse.shown() == "10+0+0"


@pytest.mark.req("GRAPH-05")
async def test_a_hold_and_its_receipts_name_the_accounts_default_key(world: World) -> None:
    purse = await Purse.with_(world, 10)
    key = await world.queue.accounts.default_key(purse.account.id, owner=None)

    hold = await purse.hold(6)
    receipt = await purse.spend(1)

    assert hold.virtual_key_id == receipt.virtual_key_id == key.id
    assert receipt.source_reference == "run/1/call"


# Repetitions.


async def test_a_hold_that_is_asked_for_again_is_the_same_hold(world: World) -> None:
    purse = await Purse.with_(world, 10)

    first, again = await purse.hold(6), await purse.hold(6)

    assert first == again
    assert await purse.shown() == "4+6+0"


async def test_another_attempt_has_a_hold_of_its_own(world: World) -> None:
    purse = await Purse.with_(world, 10)

    await purse.hold(4, attempt=1)
    await purse.hold(4, attempt=2)

    assert await purse.shown() == "2+8+0"
    assert [hold.attempt for hold in await world.queue.money.held(purse.account.id, owner="ann")] == [2, 1]


async def test_a_hold_that_differs_or_has_ended_is_not_given_again(world: World) -> None:
    purse, other = await Purse.with_(world, 10), await Purse.with_(world, 10)
    await purse.hold(6)

    for asked in (purse.hold(5), other.hold(6), purse.hold(6, schedule="s")):
        with pytest.raises(HoldDiffers):
            await asked
    await purse.settle()
    with pytest.raises(HoldEnded):
        await purse.hold(6)

    assert await purse.shown() == "10+0+0"


@pytest.mark.req("GRAPH-05")
async def test_a_receipt_that_comes_again_charges_once(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)

    first, again = await purse.spend(3), await purse.spend(3)
    await purse.settle()
    late = await purse.spend(3)

    assert first == again == late
    assert await purse.shown() == "7+0+3"


@pytest.mark.req("GRAPH-05", error=True)
async def test_other_figures_under_a_receipts_reference_are_refused(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)
    await purse.spend(3, "told")
    await purse.spend(None, "unmetered")
    await world.queue.money.receipt("run", 1, "used", usage=CALL)

    for asked in (
        purse.spend(4, "told"),
        purse.spend(None, "told"),
        purse.spend(0, "unmetered"),
        world.queue.money.receipt("run", 1, "told", usage=CALL),
        world.queue.money.receipt("run", 1, "used", usage=Usage(model="gpt-4o")),
        world.queue.money.receipt("run", 1, "used", usage=CALL, amount=1),
    ):
        with pytest.raises(ReceiptDiffers):
            await asked
    assert (await world.queue.money.get("run", 1, owner="ann")).spent == 3 + CALL_COSTS


async def test_the_first_end_of_a_hold_stands(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)
    await purse.spend(2)

    ends = [await purse.settle(), await purse.release(), await purse.settle(), await purse.release()]

    assert {end.state for end in ends} == {HoldState.SETTLED}
    assert await purse.shown() == "8+0+2"


async def test_a_run_that_is_cancelled_twice_is_refunded_once(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)

    ends = [await purse.release(), await purse.release(), await purse.settle()]

    assert {end.state for end in ends} == {HoldState.RELEASED}
    assert await purse.shown() == "10+0+0"


async def test_what_was_spent_cannot_be_released(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)
    await purse.spend(2)

    assert (await purse.release()).state is HoldState.SETTLED
    assert await purse.shown() == "8+0+2"


# Beyond the hold.


async def test_what_exceeds_a_hold_is_taken_from_what_is_available(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(3)
    await purse.spend(8)

    await purse.settle()

    assert await purse.shown() == "2+0+8"


async def test_what_exceeds_the_account_is_overrun_and_the_next_credit_pays_it(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(3)
    await purse.spend(25)

    await purse.settle()
    assert await purse.shown() == "0+0+10!15"
    await purse.credit(6, key="a")
    assert await purse.shown() == "0+0+16!9"
    await purse.credit(10, key="b")
    assert await purse.shown() == "1+0+25"


async def test_money_that_comes_back_pays_the_overrun_first(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(3, "greedy")
    await purse.hold(7, "modest")
    await purse.spend(8, run="greedy")
    await purse.settle("greedy")
    assert await purse.shown() == "0+7+3!5"

    await purse.settle("modest")

    assert await purse.shown() == "2+0+8"


async def test_a_receipt_that_comes_after_the_end_is_charged_at_once(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)
    await purse.release()

    await purse.spend(4, "late")
    await purse.spend(9, "later")

    assert await purse.shown() == "0+0+10!3"
    assert (await world.queue.money.get("run", 1, owner="ann")).spent == 13


# Unmetered, free and priced.


async def test_a_receipt_without_figures_is_counted_and_billed_as_unknown(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)

    receipt = await purse.spend(None)
    settled = await purse.release()

    assert receipt.amount is None
    assert (settled.state, settled.unmetered, settled.spent) == (HoldState.SETTLED, 1, 0)
    assert await purse.shown() == "10+0+0"
    assert (await world.queue.accounts.statement(purse.account.id, owner="ann")).unmetered == 1


async def test_usage_is_priced_by_the_table_and_free_models_cost_nothing(world: World) -> None:
    purse = await Purse.with_(world, 10_000)
    await purse.hold(5_000)

    priced = await world.queue.money.receipt("run", 1, "paid", usage=CALL)
    free = await world.queue.money.receipt("run", 1, "free", usage=Usage(model="ollama:llama3", output_tokens=9))
    unknown = await world.queue.money.receipt("run", 1, "unknown", usage=Usage(model="nobody:sells-this"))
    await purse.settle()

    assert (priced.amount, free.amount, unknown.amount) == (CALL_COSTS, 0, None)
    assert await purse.shown() == f"{10_000 - CALL_COSTS}+0+{CALL_COSTS}"


async def test_a_run_that_costs_nothing_holds_nothing_and_still_has_receipts(world: World) -> None:
    purse = await Purse.with_(world)

    await purse.hold(0)
    await purse.spend(0)
    await purse.settle()

    assert await purse.shown() == "0+0+0"


# Refusals.


@pytest.mark.req("GRAPH-06", error=True)
async def test_more_than_is_available_is_not_held(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)

    with pytest.raises(InsufficientCredit) as refused:
        await purse.hold(5, "other")

    assert (refused.value.needed, refused.value.available) == (5, 4)
    assert await purse.shown() == "4+6+0"
    assert await world.rows("SELECT count(*) FROM holds") == [(1,)]


async def test_what_has_no_hold_or_no_account_is_refused(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(1)

    for asked in (
        purse.spend(1, run="other"),
        purse.settle("other"),
        purse.release("run", 2),
        world.queue.money.renew("other", 1),
        world.queue.money.get("run", 1, owner="bob"),
        world.queue.money.get("run", 2, owner=None),
    ):
        with pytest.raises(UnknownHold):
            await asked
    with pytest.raises(UnknownAccount):
        await world.queue.money.hold("new", 1, account_id="acct_none", amount=1)


@pytest.mark.parametrize(
    "given",
    [
        {"amount": -1},
        {"amount": 10**15 + 1},
        {"amount": 0.5},
        {"attempt": 0},
        {"attempt": True},
        {"run": ""},
        {"run": "a\nb"},
    ],
)
async def test_what_makes_no_sense_is_refused_before_anything_is_written(world: World, given: dict[str, Any]) -> None:
    purse = await Purse.with_(world, 10)

    with pytest.raises(InvalidInput):
        await purse.hold(**{"amount": 1, **given})


# Leases.


async def test_a_hold_whose_holder_is_gone_lapses_to_what_it_spent(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)
    await purse.spend(1)
    world.clock.advance(HOLD_LEASE / SECOND - 1)
    assert await world.queue.money.lapse_due() == []

    world.clock.advance(1)
    (lapsed,) = await world.queue.money.lapse_due()

    assert (lapsed.state, lapsed.spent) == (HoldState.LAPSED, 1)
    assert await purse.shown() == "9+0+1"
    assert await world.queue.money.lapse_due() == []
    assert (await purse.settle()).state is HoldState.LAPSED


async def test_a_hold_that_is_renewed_does_not_lapse_and_one_that_lapsed_is_not_renewed(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)
    world.clock.advance(HOLD_LEASE / SECOND - 1)
    await world.queue.money.renew("run", 1)
    world.clock.advance(HOLD_LEASE / SECOND - 1)
    assert await world.queue.money.lapse_due() == []

    world.clock.advance(1)
    await world.queue.money.lapse_due()

    with pytest.raises(HoldEnded):
        await world.queue.money.renew("run", 1)


async def test_setting_the_time_of_day_lapses_nothing_and_a_reboot_everything(world: World) -> None:
    purse = await Purse.with_(world, 10)
    await purse.hold(6)

    world.clock.step(86_400)
    assert await world.queue.money.lapse_due() == []
    world.clock.reboot("the-next-boot")

    assert [hold.state for hold in await world.queue.money.lapse_due()] == [HoldState.LAPSED]
    assert await purse.shown() == "10+0+0"


@pytest.mark.req("GRAPH-05")
async def test_the_receipts_of_an_attempt_that_was_fenced_off_are_charged(world: World) -> None:
    purse = await Purse.with_(world, 20)
    await purse.hold(6, attempt=1)
    world.clock.advance(HOLD_LEASE / SECOND)
    await world.queue.money.lapse_due()
    await purse.hold(6, attempt=2)

    await purse.spend(5, attempt=1)
    await purse.spend(4, attempt=2)
    await purse.settle(attempt=2)

    assert await purse.shown() == "11+0+9"
