"""What a graph's run may spend and has spent: budgets that pause, and why, from what a real store has recorded."""

from typing import Any

import pytest

from duly import every
from duly.domain.amounts import UNIT, written_amount
from duly.domain.executions import EventKind, ModelCall
from duly.domain.ids import RunId, ScheduleId
from duly.domain.runs import UnknownRun
from duly.domain.schedules import Schedule, ScheduleState, Target
from duly.ports.graphs import GraphEvent
from tests.contracts.forgetful import forgetful
from tests.contracts.graphs import GRAPH, House, PatientClock, house
from tests.contracts.world import WIDE, World


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def quiet() -> None:
    return None


async def planned(home: House) -> Schedule:
    target = Target(kind="graph.run", params={"graph_id": GRAPH, "grant_id": home.grant_id}, pool=WIDE)
    return await home.queue.schedules.create(owner="ann", schedule_id="news", cadence=every("1h"), target=target)


@pytest.mark.req("OWN-03")
async def test_a_budget_pauses_its_schedule_with_the_outcome_even_if_answers_are_lost(world: World) -> None:
    home = await house(forgetful(world), quiet)
    await planned(home)
    budget = await world.queue.budgets.set(
        "account", home.account_id, owner="ann", window="day", limit=UNIT, on_exceeded="pause"
    )
    asked: dict[str, Any] = {"max_cost": 2 * UNIT, "schedule_id": "news"}

    outcome = await home.executions.execute(home.asks(**asked))

    schedule = await world.queue.schedules.get("news", owner="ann")
    assert (outcome.ok, outcome.error_code) == (False, "over_budget")
    assert (schedule.state, schedule.revision) == (ScheduleState.PAUSED, 2)
    assert schedule.state_reason == f"over_budget: {outcome.error_message}"
    assert budget.id in str(schedule.state_reason)
    assert (await home.executions.execute(home.asks(**asked))).error_code == "over_budget"
    await world.queue.schedules.resume("news", owner="ann")
    assert (await home.executions.execute(home.asks(**asked))) == outcome, "stored outcomes pause nothing"
    assert (await world.queue.schedules.get("news", owner="ann")).state is ScheduleState.ACTIVE


@pytest.mark.req("OWN-03", error=True)
@pytest.mark.parametrize("policy", ["skip", "ask"])
async def test_other_budgets_leave_the_schedule_alone_and_so_does_one_without_a_schedule(
    world: World, policy: str
) -> None:
    home = await house(world.queue, quiet)
    await planned(home)
    of = ("account", home.account_id)
    await world.queue.budgets.set(*of, owner="ann", window="day", limit=UNIT, on_exceeded=policy)
    await home.executions.execute(home.asks("a", max_cost=2 * UNIT, schedule_id="news"))
    await world.queue.budgets.set(*of, owner="ann", window="day", limit=UNIT, on_exceeded="pause")
    outcome = await home.executions.execute(home.asks("b", max_cost=2 * UNIT))

    assert outcome.error_code == "over_budget"
    assert (await world.queue.schedules.get("news", owner="ann")).revision == 1


@pytest.mark.req("OWN-03")
async def test_a_person_who_paused_it_keeps_the_say(world: World) -> None:
    home = await house(world.queue, quiet)
    await planned(home)
    await world.queue.schedules.pause("news", owner="ann")
    await world.queue.budgets.set("schedule", "news", owner="ann", window="day", limit=UNIT, on_exceeded="pause")

    await home.executions.execute(home.asks(max_cost=2 * UNIT, schedule_id="news"))

    schedule = await world.queue.schedules.get("news", owner="ann")
    assert (schedule.revision, schedule.state_reason) == (2, None)


@pytest.mark.req("OWN-02")
async def test_a_run_says_under_which_grant_it_spent_what(world: World) -> None:
    async def graph(tell: Any) -> None:
        call = ModelCall(unit="u1", model="gpt-4o", input_tokens=1_000, output_tokens=100)
        tell(GraphEvent(EventKind.USAGE, {"unit": call.unit}, call))

    home = await house(world.queue, graph)
    schedule = await planned(home)
    run = await world.queue.schedules.run_now("news", owner="ann")
    before = (await world.queue.why.run(run.id, owner="ann")).sentences
    outcome = await home.executions.execute(home.asks(max_cost=UNIT, schedule_id="news"))
    await world.queue.runs.note_execution(run.id, execution=outcome.run_id, trace_id=outcome.trace_id)

    after = (await world.queue.why.run(run.id, owner="ann")).sentences

    assert "It has not been executed, so nothing was held and nothing spent." in before
    assert any(home.grant_id in sentence and home.account_id in sentence for sentence in before)
    told = " ".join(after)
    assert f"Its execution is {outcome.run_id} of graph {GRAPH}" in told
    assert "1.00 USD was held for attempt 1" in told
    spent = (await world.queue.money.get(outcome.run_id, 1, owner=None)).spent
    assert spent > 0
    receipt = next(sentence for sentence in after if sentence.startswith("Receipt"))
    assert receipt.startswith(f"Receipt {outcome.run_id}/1/u1: {written_amount(spent)} USD for 1000 tokens in and 100")
    assert receipt.endswith(" out per million tokens of openai:gpt-4o.")
    besides = (await world.queue.why.slot(schedule.id, run.scheduled_for // 1_000_000)).sentences
    assert any(run.id in sentence for sentence in besides)


@pytest.mark.req("OWN-02", error=True)
async def test_nobody_asks_about_a_run_of_another(world: World) -> None:
    home = await house(world.queue, quiet)
    await planned(home)
    run = await world.queue.schedules.run_now("news", owner="ann")

    for run_id, owner in ((run.id, "bob"), (RunId("run_nowhere"), None)):
        with pytest.raises(UnknownRun):
            await world.queue.why.run(run_id, owner=owner)
    assert await world.queue.grants.of_schedule(ScheduleId("news"), owner="ann") is not None
