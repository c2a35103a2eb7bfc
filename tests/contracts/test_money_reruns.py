"""Answers that were lost: every change of money is run again after it was committed, and changes nothing more."""

import pytest

from duly.domain.billing import HoldState
from duly.domain.grants import EVERY_GRAPH
from duly.domain.instants import SECOND
from tests.contracts.forgetful import forgetful
from tests.contracts.purse import Purse
from tests.contracts.world import World


@pytest.mark.req("GRAPH-05")
async def test_every_step_of_money_may_be_run_again_after_it_was_committed(world: World) -> None:
    queue = forgetful(world)
    purse = Purse(queue, await queue.accounts.create(owner="ann", name="main"))

    await purse.credit(100, key="k")
    await queue.budgets.set("account", purse.account.id, owner="ann", window="day", limit=90)
    grant = await queue.grants.create(owner="ann", account_id=purse.account.id, scopes=[EVERY_GRAPH])
    assert await purse.shown() == "100+0+0"
    held = await purse.hold(20, "a")
    await purse.hold(20, "b")
    await purse.hold(20, "c")
    assert (held.state, await purse.shown()) == (HoldState.HELD, "40+60+0")
    for run in "abc":
        await purse.spend(3, run=run)
    await purse.settle("a")
    await purse.release("b")
    await queue.money.renew("c", 1, lease=SECOND)
    world.clock.advance(1)
    await queue.money.lapse_due()
    await purse.spend(4, "late", run="a")

    assert await purse.shown() == "87+0+13"
    (budget,) = await queue.budgets.list(owner="ann")
    assert budget.used == 13
    await queue.grants.revoke(grant.id, owner="ann")
    assert len(await queue.grants.list(owner="ann")) == 1
