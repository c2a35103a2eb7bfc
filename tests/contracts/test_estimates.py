"""What mass actions cost is shown before, as it is held when they run, and may be capped."""

from typing import Any

import pytest

from duly import InvalidInput, every
from duly.application.estimates import DEFAULT_HOLD
from duly.application.retries import FailedFilter
from duly.domain.amounts import UNIT, Amount
from duly.domain.estimates import Estimate
from duly.domain.executions import GRAPH_RUN
from duly.domain.groups import Group, GroupAlreadyEnded, GroupRunning, GroupStatus, NewGroup, NewMember
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import Schedule, ScheduleChanged, Target
from tests.contracts.graphs import House, PatientClock, house
from tests.contracts.purse import Purse
from tests.contracts.world import WIDE, World, new

FREE = "ollama:llama3"
ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def answers(call: Any) -> Any:
    return {}


async def fails(call: Any) -> Any:
    raise LookupError("no news")


def target(model: str | None = None, **params: Any) -> Target:
    given = {} if model is None else {"model": model}
    return Target(kind=GRAPH_RUN, params={"graph_id": "python:g", "input": given, **params}, pool=WIDE)


async def saved(world: World, what: Target) -> Schedule:
    return await world.queue.schedules.create(owner="ann", schedule_id="news", cadence=every("1m"), target=what)


def past(world: World, runs: int = 3) -> dict[str, Any]:
    """A span of so many minutes that have passed."""
    now = world.clock.now()
    return {"start": moment_of(Instant(now - (runs * 60 - 30) * SECOND)), "end": moment_of(now)}


async def cost(world: World, runs: int = 3) -> Estimate:
    preview = await world.queue.schedules.preview_backfill("news", owner="ann", **past(world, runs))
    assert preview.count == runs
    assert preview.cost is not None
    return preview.cost


# Backfills


@pytest.mark.req("OWN-05")
async def test_a_backfill_shows_what_is_held_and_whether_the_account_has_it(world: World) -> None:
    purse = await Purse.with_(world, 2 * UNIT)
    await saved(world, target(max_cost="0.50"))

    covered, too_much = await cost(world, 4), await cost(world, 5)

    assert [(each.account_id, each.runs, each.held, each.covers) for each in covered.purses] == [
        (purse.account.id, 4, 2 * UNIT, True)
    ]
    assert list(covered.in_words()) == [
        f"2.00 USD is held for 4 runs at most; {purse.account.id} has 2.00 USD available, which covers it."
    ]
    assert (covered.is_covered, too_much.is_covered, too_much.held) == (True, False, {"USD": 2_500_000})


@pytest.mark.req("OWN-05")
@pytest.mark.parametrize(
    ("what", "held", "unbounded", "said"),
    [
        (Target(kind="work", pool=WIDE), {}, 0, "It costs nothing."),
        (target(FREE), {}, 0, "It costs nothing."),
        (target("gpt-4o"), {"USD": 3 * DEFAULT_HOLD}, 0, "3.00 USD is held for 3 runs at most"),
        (target(), {}, 3, "For 3 runs nothing is held, and nothing says what that may cost: unmetered."),
    ],
    ids=["no graph", "free model", "paid model", "a graph's own model"],
)
async def test_what_spends_nothing_says_so_and_what_nobody_knows_is_not_called_free(
    world: World, what: Target, held: dict[str, int], unbounded: int, said: str
) -> None:
    await Purse.with_(world, 10 * UNIT)
    await saved(world, what)

    estimate = await cost(world)

    assert (estimate.held, estimate.unbounded) == (held, unbounded)
    assert next(estimate.in_words()).startswith(said)


@pytest.mark.req("OWN-05")
async def test_what_past_runs_cost_is_told_with_how_many_they_were(world: World) -> None:
    purse = await Purse.with_(world, 10 * UNIT)
    await saved(world, target(max_cost="1.00"))
    assert (await cost(world)).past == ()
    for run, attempts in (("a", [300_000]), ("b", [100_000, 100_001]), ("c", [None])):
        for attempt, amount in enumerate(attempts, 1):
            await purse.hold(UNIT, run, attempt, schedule="news")
            await purse.spend(amount, run=run, attempt=attempt)
            await purse.settle(run, attempt)
    await purse.hold(UNIT, "still open", schedule="news")

    estimate = await cost(world)

    (before,) = estimate.past
    assert (before.runs, before.spent, before.unmetered, before.mean) == (3, 500_001, 1, 166_667)
    assert list(estimate.in_words())[-1] == (
        "Such runs have cost 0.166667 USD on average, over 3 runs; "
        "1 of them used something that nobody knows the cost of."
    )


@pytest.mark.req("OWN-05")
async def test_what_was_shown_is_what_is_held_when_it_runs(world: World) -> None:
    """By the same rule: an execution of what the schedule asks for holds what the preview says of one run."""
    home: House = await house(world.queue, fails)
    await saved(world, target("gpt-4o", grant_id=home.grant_id))
    (purse,) = (await cost(world, 1)).purses

    execution = await home.executions.execute(home.asks(input={"model": "gpt-4o"}))

    (hold,) = await world.queue.storage.read(lambda tx: tx.holds.of_run(execution.run_id))
    assert (hold.amount, hold.account_id) == (purse.held, purse.account_id)


@pytest.mark.req("OWN-05", error=True)
async def test_a_backfill_beyond_its_cost_is_refused_and_leaves_no_row(world: World) -> None:
    await Purse.with_(world, 10 * UNIT)
    await saved(world, target(max_cost="0.50"))
    schedules = world.queue.schedules

    with pytest.raises(InvalidInput, match=r"max_cost: 1\.50 USD would be held, more than 1\.49 \(choose fewer"):
        await schedules.backfill("news", owner="ann", max_cost=Amount(1_490_000), **past(world))
    assert await world.queue.runs.list(owner="ann") == []

    assert len(await schedules.backfill("news", owner="ann", max_cost=Amount(1_500_000), **past(world))) == 3


@pytest.mark.req("OWN-05", error=True)
async def test_what_nobody_knows_the_cost_of_does_not_pass_a_cap(world: World) -> None:
    await saved(world, target())

    with pytest.raises(InvalidInput, match="nothing says what 3 of 3 runs may cost"):
        await world.queue.schedules.backfill("news", owner="ann", max_cost=Amount(UNIT), **past(world))


@pytest.mark.req("OWN-05", error=True)
async def test_a_schedule_that_changed_since_its_preview_is_not_backfilled(world: World) -> None:
    await saved(world, Target(kind="work", pool=WIDE))
    schedules, span = world.queue.schedules, past(world)
    preview = await schedules.preview_backfill("news", owner="ann", **span)
    await schedules.edit("news", owner="ann", cadence=every("30s"))

    with pytest.raises(ScheduleChanged):
        await schedules.backfill("news", owner="ann", expected_revision=preview.revision, **span)
    assert await world.queue.runs.list(owner="ann") == []

    seen = (await schedules.preview_backfill("news", owner="ann", **span)).revision
    done = await schedules.backfill("news", owner="ann", expected_revision=seen, key="may", **span)
    await schedules.edit("news", owner="ann", cadence=every("10m"))
    again = await schedules.backfill("news", owner="ann", expected_revision=seen, key="may", **span)
    assert [run.id for run in again] == [run.id for run in done], "what was begun is told again"


# Retries


async def failed_graphs(world: World, home: House, *keys: str) -> None:
    """Jobs that failed before their graphs were executed."""
    params = {"graph_id": "python:g", "grant_id": home.grant_id, "input": {}, "max_cost": "0.25"}
    for key in keys:
        await world.put(GRAPH_RUN, params={**params, "key": key}, retry=ONCE)
    hand = await world.hand()
    await hand.fail(*await hand.claim(len(keys)))


@pytest.mark.req("OWN-05")
async def test_a_bulk_retry_shows_its_cost_and_that_a_known_outcome_costs_nothing(world: World) -> None:
    home = await house(world.queue, answers)
    await home.executions.execute(home.asks("done"))
    await failed_graphs(world, home, "done", "one", "two")
    await world.put("work", retry=ONCE)
    hand = await world.hand()
    await hand.fail(*await hand.claim())

    preview = await world.queue.jobs.retry_failed(FailedFilter(), owner=None, cap=10)

    assert (len(preview.jobs), preview.cost.runs, preview.cost.free) == (4, 4, 2)
    assert preview.cost.held == {"USD": 500_000}


@pytest.mark.req("OWN-05", error=True)
async def test_a_bulk_retry_beyond_its_cost_tries_none(world: World) -> None:
    home = await house(world.queue, fails)
    await failed_graphs(world, home, "one", "two")
    jobs = world.queue.jobs

    with pytest.raises(InvalidInput, match=r"max_cost: 0\.50 USD would be held, more than 0\.40"):
        await jobs.retry_failed(FailedFilter(), owner=None, cap=10, max_cost=Amount(400_000), dry_run=False)
    assert await jobs.list(owner=None) == []

    done = await jobs.retry_failed(FailedFilter(), owner=None, cap=10, max_cost=Amount(500_000), dry_run=False)
    assert len(done.puts) == 2


# Groups


async def partial(world: World, home: House) -> Group:
    params = {"graph_id": "python:g", "grant_id": home.grant_id, "input": {}, "max_cost": "0.25"}
    members = [NewMember(job=new(GRAPH_RUN, params=params, retry=ONCE))] * 2 + [NewMember(job=new("work"))]
    group = await world.queue.groups.create(NewGroup(members=members), owner="ann")
    hand = await world.hand()
    claimed = await hand.claim(3)
    await hand.fail(*(job for job in claimed if job.kind == GRAPH_RUN))
    await hand.finish(*(job for job in claimed if job.kind == "work"))
    return await world.queue.groups.get(group.id, owner="ann")


@pytest.mark.req("OWN-05")
async def test_a_groups_retry_shows_which_members_and_at_what_cost(world: World) -> None:
    group = await partial(world, await house(world.queue, fails))

    again = await world.queue.groups.preview_retry(group.id, owner="ann")
    retried = await world.queue.groups.retry(group.id, owner="ann", cap=2, max_cost=Amount(500_000))

    assert ([member.place for member in again.members], again.cost.held) == ([0, 1], {"USD": 500_000})
    assert (group.status, retried.status, retried.open) == (GroupStatus.PARTIAL, GroupStatus.RUNNING, 2)


@pytest.mark.req("OWN-05", error=True)
async def test_a_groups_retry_beyond_its_caps_changes_nothing(world: World) -> None:
    group = await partial(world, await house(world.queue, fails))
    groups = world.queue.groups

    with pytest.raises(InvalidInput, match="cap: 2 members failed or were cancelled"):
        await groups.retry(group.id, owner="ann", cap=1)
    with pytest.raises(InvalidInput, match=r"max_cost: 0\.50 USD would be held"):
        await groups.retry(group.id, owner="ann", max_cost=Amount(1))
    assert await groups.get(group.id, owner="ann") == group

    whole = await groups.create(NewGroup(members=[NewMember(job=new("work"))]), owner="ann")
    with pytest.raises(GroupRunning):
        await groups.preview_retry(whole.id, owner="ann")
    await (await world.hand()).work_off()
    with pytest.raises(GroupAlreadyEnded):
        await groups.preview_retry(whole.id, owner="ann")


@pytest.mark.req("OWN-05", error=True)
async def test_somebody_elses_grant_in_ones_params_shows_nothing_of_its_account(world: World) -> None:
    home = await house(world.queue, fails)
    params = {"graph_id": "python:g", "grant_id": home.grant_id, "input": {}, "max_cost": "0.25"}
    job = new(GRAPH_RUN, params=params, retry=ONCE)
    group = await world.queue.groups.create(NewGroup(members=[NewMember(job=job)]), owner="eve")
    hand = await world.hand()
    await hand.fail(*await hand.claim())

    of_group = await world.queue.groups.preview_retry(group.id, owner="eve")
    in_bulk = await world.queue.jobs.retry_failed(FailedFilter(), owner="eve", cap=9)

    assert (of_group.cost.purses, in_bulk.cost.purses, in_bulk.cost.runs) == ((), (), 1)
