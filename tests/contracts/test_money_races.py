"""Many at once, on several connections: no money is held twice, charged twice or lost."""

import asyncio
from collections import Counter

import pytest

from duly import every
from duly.bootstrap import Queue
from duly.domain.billing import InsufficientCredit, OverBudget
from duly.domain.schedules import Target
from tests.contracts.purse import Purse
from tests.contracts.world import World


async def _queues(world: World) -> list[Queue]:
    return [world.queue, *[await world.another() for _ in range(3)]]


@pytest.mark.req("GRAPH-06", error=True)
async def test_of_a_hundred_runs_on_a_balance_for_one_exactly_one_passes(world: World) -> None:
    purse = await Purse.with_(world, 10)
    queues = await _queues(world)

    outcomes = await asyncio.gather(
        *(purse.hold(10, f"run {n}", queue=queues[n % 4]) for n in range(100)), return_exceptions=True
    )

    assert Counter(type(outcome).__name__ for outcome in outcomes) == {"Hold": 1, InsufficientCredit.__name__: 99}
    assert await purse.shown() == "0+10+0"


@pytest.mark.req("OWN-03", error=True)
async def test_of_fifty_runs_on_a_budget_for_three_exactly_three_pass(world: World) -> None:
    purse = await Purse.with_(world, 1_000)
    queues = await _queues(world)
    await world.queue.budgets.set("account", purse.account.id, owner="ann", window="day", limit=35)

    outcomes = await asyncio.gather(
        *(purse.hold(10, f"run {n}", queue=queues[n % 4]) for n in range(50)), return_exceptions=True
    )

    assert Counter(type(outcome).__name__ for outcome in outcomes) == {"Hold": 3, OverBudget.__name__: 47}
    assert await purse.shown() == "970+30+0"


async def test_one_hold_that_many_ask_for_is_made_once(world: World) -> None:
    purse = await Purse.with_(world, 10)
    queues = await _queues(world)

    holds = await asyncio.gather(*(purse.hold(6, queue=queues[n % 4]) for n in range(40)))

    assert len({hold.expires_at for hold in holds}) == 1
    assert await purse.shown() == "4+6+0"


@pytest.mark.req("GRAPH-05")
async def test_receipts_and_ends_that_race_charge_each_unit_once(world: World) -> None:
    purse = await Purse.with_(world, 100)
    queues = await _queues(world)
    await purse.hold(50)

    moneys = [queue.money for queue in queues]

    _, ends = await asyncio.gather(
        asyncio.gather(*(moneys[n % 4].receipt("run", 1, f"unit {n // 2}", amount=3) for n in range(40))),
        asyncio.gather(*((moneys[n % 4].settle if n % 3 else moneys[n % 4].release)("run", 1) for n in range(12))),
    )

    assert len({(hold.state, hold.ended_at) for hold in ends}) == 1
    assert await purse.shown() == "40+0+60"


async def test_credits_that_race_under_one_key_count_once(world: World) -> None:
    purse = await Purse.with_(world)
    queues = await _queues(world)

    await asyncio.gather(
        *(queues[n % 4].accounts.credit(purse.account.id, amount=5, key=f"k{n % 3}") for n in range(30))
    )

    assert await purse.shown() == "15+0+0"


async def test_two_schedules_and_two_accounts_never_wait_for_each_other_for_ever(world: World) -> None:
    """They meet on the budgets of the schedules, in whatever order they come."""
    purses = [await Purse.with_(world, 1_000), await Purse.with_(world, 1_000)]
    queues = await _queues(world)
    for n in range(3):
        await world.queue.schedules.create(
            owner="ann", schedule_id=f"s{n}", cadence=every("1h"), target=Target(kind="work")
        )
    covered = [("account", purse.account.id) for purse in purses] + [("schedule", f"s{n}") for n in range(3)]
    for scope, scope_id in covered:
        for window in ("month", "day"):
            await world.queue.budgets.set(scope, scope_id, owner="ann", window=window, limit=900)

    async def one(n: int) -> None:
        purse, run = purses[n % 2], f"run {n}"
        money = queues[n % 4].money
        await purse.hold(10, run, schedule=f"s{n % 3}", queue=queues[n % 4])
        await money.receipt(run, 1, "call", amount=n % 15)
        await money.settle(run, 1)
        await money.receipt(run, 1, "late", amount=1)

    await asyncio.gather(*(one(n) for n in range(60)))

    used = [sum(n % 15 + 1 for n in range(60) if n % 2 == side) for side in (0, 1)]
    assert [await purse.shown() for purse in purses] == [f"{1_000 - spent}+0+{spent}" for spent in used]
