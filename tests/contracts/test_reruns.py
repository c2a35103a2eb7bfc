"""A transaction whose answer was lost is run once more: what it did is neither undone nor denied."""

from itertools import permutations

import pytest

from duly import every
from duly.domain.billing import UnknownBudget
from duly.domain.declarations import Declared
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import FinishedJob, JobAlreadyFinished, JobStatus
from duly.domain.pools import PoolInUse, UnknownPool
from duly.domain.schedules import Target
from tests.contracts.forgetful import forgetful
from tests.contracts.purse import Purse
from tests.contracts.world import WIDE, World

LETTER = Declared(id="letter", cadence=every("1m"), target=Target(kind="letter", pool=WIDE))


@pytest.mark.parametrize(("first", "second"), list(permutations("abc", 2)))
async def test_a_swap_is_not_swapped_back(world: World, first: str, second: str) -> None:
    ids = {kind: await world.put(kind) for kind in "abc"}

    await forgetful(world).order.swap(ids[first], ids[second])

    assert await world.kinds() == list("abc".translate(str.maketrans(first + second, second + first)))


async def test_a_swap_of_jobs_that_share_their_places_is_not_swapped_back(world: World) -> None:
    ids: list[JobId] = [await world.put(kind) for kind in "abcd"]
    await world.rows(f"UPDATE jobs SET position = 7 WHERE id IN ('{ids[0]}', '{ids[1]}', '{ids[2]}')")

    await forgetful(world).order.swap(ids[0], ids[2])

    assert await world.kinds() == list("cbad")


async def test_moves_end_where_they_ended_the_first_time(world: World) -> None:
    order = forgetful(world).order
    ids = {kind: await world.put(kind) for kind in "abcd"}

    await order.before(ids["d"], ids["a"])
    await order.after(ids["a"], ids["c"])
    await order.to_front(ids["b"])
    await order.reprioritise(ids["c"], 5)

    assert await world.kinds() == list("cbda")


async def test_places_and_arrangements_are_the_same_after_a_second_run(world: World) -> None:
    order = forgetful(world).order
    ids = {kind: await world.put(kind) for kind in "abcde"}

    await order.to_place(ids["d"], 2)
    await order.to_place(ids["a"], 9)
    assert await world.kinds() == list("dbcea")
    await order.arrange([ids["e"], ids["b"], ids["a"]])

    assert await world.kinds() == list("debac")


@pytest.mark.parametrize("lane", [None, "l"])
async def test_a_cancelled_job_is_cancelled_not_refused(world: World, lane: str | None) -> None:
    job_id = await world.put(lane=lane)

    assert await forgetful(world).jobs.cancel(job_id, reason="enough") is True

    job = await world.queue.jobs.get(job_id)
    assert isinstance(job, FinishedJob)
    assert (job.status, job.error) == (JobStatus.CANCELLED, "enough")
    with pytest.raises(JobAlreadyFinished):
        await forgetful(world).jobs.cancel(job_id, reason="enough")


async def test_a_running_job_is_asked_to_stop_and_then_loses_its_claim(world: World) -> None:
    queue, hand = forgetful(world), await world.hand()
    job_id = await world.put()
    await hand.claim()

    assert await queue.jobs.cancel(job_id, reason="enough") is False
    assert await queue.sessions.revoke(job_id, reason="enough") is True
    assert await queue.sessions.revoke(job_id, reason="enough") is False


async def test_a_deleted_budget_is_deleted_not_unknown(world: World) -> None:
    queue, purse = forgetful(world), await Purse.with_(world)
    budget = await queue.budgets.set("account", purse.account.id, owner="ann", window="day", limit=9)

    await queue.budgets.delete(budget.id, owner="ann")

    with pytest.raises(UnknownBudget):
        await queue.budgets.delete(budget.id, owner="ann")


async def test_a_removed_pool_is_removed_not_unknown(world: World) -> None:
    queue = forgetful(world)
    await world.pool("gone", 1)

    await queue.pools.remove(PoolName("gone"))

    with pytest.raises(UnknownPool):
        await queue.pools.remove(PoolName("gone"))
    await world.put()
    with pytest.raises(PoolInUse):
        await queue.pools.remove(WIDE)


async def test_what_a_program_declares_is_told_as_it_was_made(world: World) -> None:
    declarations = forgetful(world).declarations
    changed = Declared(id="letter", cadence=every("2m"), target=LETTER.target)

    assert (await declarations.reconcile("p", [LETTER], owner="ann")).created == ("letter",)
    assert (await declarations.reconcile("p", [LETTER], owner="ann")).unchanged == ("letter",)
    assert (await declarations.reconcile("p", [changed], owner="ann")).updated == ("letter",)
    assert (await declarations.reconcile("p", [], owner="ann")).retired == ("letter",)
    assert (await declarations.reconcile("p", [LETTER], owner="ann")).created == ("letter",)
    assert await world.rows("SELECT revision, state FROM schedules") == [(4, "active")]


async def test_a_lapsed_hold_is_told_once(world: World) -> None:
    money, purse = forgetful(world).money, await Purse.with_(world, 10)
    await purse.hold(4)
    world.clock.advance(3_600)

    assert [hold.run_id for hold in await money.lapse_due()] == ["run"]
    assert await money.lapse_due() == []
    assert await purse.shown() == "10+0+0"
