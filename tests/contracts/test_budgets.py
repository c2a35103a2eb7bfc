"""Budgets: judged in the hold's own transaction, counted by what was held and then by what was spent."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from duly import every
from duly.domain.billing import Budget, OnExceeded, OverBudget, UnknownAccount, UnknownBudget, Window
from duly.domain.cadence import InvalidZone
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, instant_of
from duly.domain.schedules import Target, UnknownSchedule
from tests.contracts.points import met, stop_after
from tests.contracts.purse import Purse
from tests.contracts.world import World


async def _limited(world: World, limit: int, **rest: Any) -> tuple[Purse, Budget]:
    purse = await Purse.with_(world, 1_000)
    budget = await world.queue.budgets.set(
        "account", purse.account.id, **{"owner": "ann", "window": "day", "limit": limit, **rest}
    )
    return purse, budget


async def _used(world: World, budget: Budget) -> int:
    return (await world.queue.budgets.get(budget.id, owner="ann")).used


async def _schedule(world: World, schedule_id: str = "s") -> None:
    await world.queue.schedules.create(
        owner="ann", schedule_id=schedule_id, cadence=every("1h"), target=Target(kind="work")
    )


def _set_clock(world: World, text: str) -> None:
    moment = instant_of(datetime.fromisoformat(text).replace(tzinfo=UTC), field="text")
    world.clock.step((moment - world.clock.now()) / SECOND)


@pytest.mark.req("OWN-03")
async def test_a_budget_counts_what_is_held_and_then_what_was_spent(world: World) -> None:
    purse, budget = await _limited(world, 10)

    await purse.hold(6, "one")
    assert await _used(world, budget) == 6
    await purse.spend(2, run="one")
    await purse.settle("one")
    assert await _used(world, budget) == 2
    await purse.spend(3, "late", run="one")
    assert await _used(world, budget) == 5
    await purse.hold(5, "two")
    await purse.release("two")

    assert await _used(world, budget) == 5


@pytest.mark.req("OWN-03", error=True)
async def test_beyond_a_budget_nothing_is_held_and_the_refusal_says_what_to_do(world: World) -> None:
    purse, budget = await _limited(world, 10, on_exceeded="pause")
    await purse.hold(6, "one")

    with pytest.raises(OverBudget) as refused:
        await purse.hold(5, "two")

    assert refused.value.policy is OnExceeded.PAUSE
    assert refused.value.budget_id == budget.id
    assert await purse.shown() == "994+6+0"
    assert await _used(world, budget) == 6
    await purse.hold(4, "three")


@pytest.mark.req("OWN-03")
async def test_a_schedules_budget_covers_its_runs_alone_whoever_pays(world: World) -> None:
    one, two = await Purse.with_(world, 100), await Purse.with_(world, 100)
    await _schedule(world)
    budget = await world.queue.budgets.set("schedule", "s", owner="ann", window="total", limit=10)

    await one.hold(50, "other")
    await one.hold(6, "a", schedule="s")
    with pytest.raises(OverBudget):
        await two.hold(5, "b", schedule="s")
    await two.hold(4, "b", schedule="s")

    assert (budget.window, await _used(world, budget)) == (Window.TOTAL, 10)


@pytest.mark.req("OWN-03", error=True)
async def test_nobody_uses_up_the_budget_of_somebody_elses_schedule(world: World) -> None:
    ann, bob = await Purse.with_(world, 100), await Purse.with_(world, 100, owner="bob")
    await _schedule(world)
    budget = await world.queue.budgets.set("schedule", "s", owner="ann", window="total", limit=10)

    for asked in (bob.hold(6, schedule="s"), ann.hold(6, schedule="nowhere")):
        with pytest.raises(UnknownSchedule):
            await asked

    assert (await _used(world, budget), await bob.shown(), await ann.shown()) == (0, "100+0+0", "100+0+0")
    await world.queue.schedules.delete("s", owner="ann")
    await ann.hold(6, schedule="s")
    assert await _used(world, budget) == 6


@pytest.mark.req("OWN-03")
async def test_a_user_whom_a_grant_names_spends_somebodys_money_within_his_own_schedules_budget(world: World) -> None:
    bob = await Purse.with_(world, 100, owner="bob")
    await _schedule(world)
    budget = await world.queue.budgets.set("schedule", "s", owner="ann", window="total", limit=10)

    await world.queue.money.hold("run", 1, account_id=bob.account.id, amount=6, schedule_id="s", user="ann")

    assert (await _used(world, budget), await bob.shown()) == (6, "94+6+0")


@pytest.mark.req("OWN-03")
async def test_the_narrowest_of_several_budgets_decides(world: World) -> None:
    purse, _ = await _limited(world, 10)
    await _schedule(world)
    monthly = await world.queue.budgets.set("account", purse.account.id, owner="ann", window="month", limit=12)
    await world.queue.budgets.set("schedule", "s", owner="ann", window="day", limit=5)

    with pytest.raises(OverBudget, match="schedule s"):
        await purse.hold(6, "a", schedule="s")
    await purse.hold(10, "b")
    world.clock.advance(86_400)
    with pytest.raises(OverBudget, match="a month"):
        await purse.hold(3, "c")
    await purse.hold(2, "c")

    assert await _used(world, monthly) == 12


@pytest.mark.req("OWN-03")
async def test_a_day_of_25_hours_is_one_window(world: World) -> None:
    _set_clock(world, "2026-10-24T22:00:00")
    purse, budget = await _limited(world, 10, timezone="Europe/Berlin")
    await purse.hold(10, "first second")

    _set_clock(world, "2026-10-25T22:59:59")
    with pytest.raises(OverBudget):
        await purse.hold(1, "last second")
    _set_clock(world, "2026-10-25T23:00:00")
    await purse.hold(10, "next day")

    assert await _used(world, budget) == 10


@pytest.mark.req("OWN-03", error=True)
async def test_a_clock_that_is_set_back_reopens_no_window(world: World) -> None:
    _set_clock(world, "2026-11-17T12:00:00")
    purse, budget = await _limited(world, 10)
    await purse.hold(10, "today")

    world.clock.step(-86_400)
    with pytest.raises(OverBudget):
        await purse.hold(1, "yesterday")
    await purse.release("today")
    await purse.hold(3, "yesterday")
    assert await _used(world, budget) == 3
    await purse.settle("yesterday")

    assert await _used(world, budget) == 0


async def test_a_hold_that_ends_in_a_later_window_leaves_that_window_alone(world: World) -> None:
    purse, budget = await _limited(world, 10)
    await purse.hold(8, "old")
    world.clock.advance(86_400)
    await purse.hold(5, "new")

    await purse.spend(8, run="old")
    await purse.settle("old")
    await purse.spend(9, "late", run="old")

    assert await _used(world, budget) == 5


async def test_a_budget_counts_what_was_held_before_it_was_set(world: World) -> None:
    purse = await Purse.with_(world, 1_000)
    await purse.hold(3, "ended")
    await purse.spend(1, run="ended")
    await purse.settle("ended")
    await purse.hold(4, "open")

    budget = await world.queue.budgets.set("account", purse.account.id, owner="ann", window="week", limit=10)
    assert budget.used == 5
    await purse.settle("open")

    assert await _used(world, budget) == 1


async def test_setting_a_budget_again_changes_it_and_keeps_its_count(world: World) -> None:
    purse, budget = await _limited(world, 10)
    await purse.hold(8)

    changed = await world.queue.budgets.set("account", purse.account.id, owner=None, window="day", limit=5)

    assert (changed.id, changed.limit, changed.used, changed.owner) == (budget.id, 5, 8, "ann")
    assert [listed.id for listed in await world.queue.budgets.list(owner="ann")] == [budget.id]
    await world.queue.budgets.delete(budget.id, owner="ann")
    assert await world.queue.budgets.list(owner=None) == []
    await purse.hold(500, "free again")


async def test_somebody_elses_budget_does_not_exist(world: World) -> None:
    purse, budget = await _limited(world, 10)
    await _schedule(world)
    budgets = world.queue.budgets

    assert await budgets.list(owner="bob") == []
    with pytest.raises(UnknownBudget):
        await budgets.get(budget.id, owner="bob")
    with pytest.raises(UnknownBudget):
        await budgets.delete(budget.id, owner="bob")
    with pytest.raises(UnknownAccount):
        await budgets.set("account", purse.account.id, owner="bob", window="day", limit=1)
    with pytest.raises(UnknownSchedule):
        await budgets.set("schedule", "s", owner="bob", window="day", limit=1)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"window": "year"}, InvalidInput),
        ({"limit": -1}, InvalidInput),
        ({"on_exceeded": "cry"}, InvalidInput),
        ({"timezone": "Mars/Olympus"}, InvalidZone),
    ],
)
@pytest.mark.req("OWN-03", error=True)
async def test_what_is_no_budget_is_refused(world: World, given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await _limited(world, **{"limit": 10, **given})


@pytest.mark.store("postgres")
async def test_a_budget_that_is_set_while_a_hold_is_made_counts_it(postgres_world: World) -> None:
    world = postgres_world
    await _schedule(world)
    purse = await Purse.with_(world, 1_000)

    with stop_after("budgets_covering") as point:
        holding = asyncio.create_task(purse.hold(7, schedule="s"))
        await point.reached.wait()
        setting = asyncio.create_task(world.queue.budgets.set("schedule", "s", owner="ann", window="day", limit=10))
        await met(setting)
        assert not setting.done(), "it must wait for whoever has looked for budgets and found none"
        point.go.set()
        await asyncio.gather(holding, setting)

    assert (await setting).used == 7
