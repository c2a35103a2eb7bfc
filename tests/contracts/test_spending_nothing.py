"""A `max_cost` of nothing, on every store: no paid model is called, and what was spent all the same is charged."""

from typing import Any

import pytest

from duly import every
from duly.bootstrap import Registry
from duly.domain.errors import InvalidInput
from duly.domain.executions import EventKind, GraphResult, ModelCall
from duly.domain.schedules import Target
from duly.graphs.telling import Tell
from duly.ports.graphs import GraphCall, GraphEvent
from tests.adapters.graphs import news
from tests.contracts.graphs import GRAPH, PatientClock, house
from tests.contracts.world import World

PAID, FREE = "gpt-4o", "ollama:llama3"


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


def used(model: str | None, unit: str = "u1") -> GraphEvent:
    call = ModelCall(unit=unit, model=model, input_tokens=1_000, output_tokens=100)
    return GraphEvent(EventKind.USAGE if call.is_metered else EventKind.UNMETERED, {"unit": unit}, call)


async def money(world: World) -> tuple[int, int]:
    ((held, charged),) = await world.rows("SELECT held, charged FROM billing_accounts")
    return held, charged


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_paid_model_is_refused_before_anything_runs(world: World) -> None:
    calls = []

    async def graph(call: GraphCall) -> None:
        calls.append(call)

    home = await house(world.queue, graph)

    refused = await home.executions.execute(home.asks(input={"model": PAID}, max_cost=0))

    assert (refused.ok, refused.error_code) == (False, "may_spend_nothing")
    assert refused.error_message is not None
    assert all(word in refused.error_message for word in ("max_cost is 0", PAID, "raise max_cost", "DULY_FREE_MODELS"))
    assert (calls, await world.rows("SELECT * FROM holds")) == ([], [])


@pytest.mark.req("GRAPH-06")
async def test_a_free_model_runs_for_nothing_and_any_runs_if_it_may_cost_something(world: World) -> None:
    async def graph(call: GraphCall, tell: Tell) -> str:
        model = call.input["calls"]
        call.check_model(model)
        tell(used(model))
        return "done"

    home = await house(world.queue, graph)

    free = await home.executions.execute(home.asks("a", input={"model": FREE, "calls": FREE}, max_cost=0))
    paid = await home.executions.execute(home.asks("b", input={"calls": PAID}, max_cost=1))
    unlimited = await home.executions.execute(home.asks("c", input={"calls": PAID}))

    assert [each.ok for each in (free, paid, unlimited)] == [True] * 3
    rows = await world.rows("SELECT run_id, amount, spent FROM holds")
    assert {run: (amount, spent > 0) for run, amount, spent in rows} == {
        free.run_id: (0, False),
        paid.run_id: (1, True),
        unlimited.run_id: (0, True),
    }


@pytest.mark.req("GRAPH-06", error=True)
@pytest.mark.parametrize("model", [PAID, "nobody-knows-it", None])
async def test_a_graph_that_chooses_its_model_itself_is_refused_before_the_call(world: World, model: Any) -> None:
    spent = []

    async def graph(call: GraphCall) -> None:
        call.check_model(FREE)
        call.check_model(model)
        spent.append(model)

    home = await house(world.queue, graph)

    refused = await home.executions.execute(home.asks(max_cost=0))

    assert (refused.error_code, spent, await money(world)) == ("may_spend_nothing", [], (0, 0))


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_graph_of_langgraphs_calls_no_model_that_is_not_free(world: World) -> None:
    registry = Registry()
    registry.add("langgraph:news", news.news())
    home = await house(world.queue, lambda: None)
    executions = world.queue.executions(registry)
    asked = {"graph_id": "langgraph:news", "input": {"topic": "ai"}}

    refused = await executions.execute(home.asks("a", **asked, max_cost=0))
    ran = await executions.execute(home.asks("b", **asked))

    assert (refused.error_code, ran.ok) == ("may_spend_nothing", True), refused.error_message
    assert "offline:echo" in str(refused.error_message)
    assert await world.rows("SELECT run_id FROM charge_receipts") == [(ran.run_id,)]


@pytest.mark.req("GRAPH-05")
@pytest.mark.parametrize("waits", [False, True])
async def test_what_was_spent_all_the_same_is_charged_and_the_run_fails(world: World, waits: bool) -> None:
    """It tells of its calls afterwards: both are written down, though the first was one too many."""

    async def graph(tell: Tell) -> GraphResult:
        tell(used(FREE, "u0"))
        tell(used(PAID, "u1"))
        tell(used(PAID, "u2"))
        return GraphResult(output={}, waits=waits)

    home = await house(world.queue, graph)

    failed = await home.executions.execute(home.asks(max_cost=0))

    assert (failed.ok, failed.error_code) == (False, "may_spend_nothing")
    hold = await world.queue.money.get(failed.run_id, 1, owner=None)
    receipts = await world.rows("SELECT unit, amount FROM charge_receipts ORDER BY unit")
    assert [unit for unit, _ in receipts] == ["u0", "u1", "u2"]
    assert 0 < hold.spent == sum(amount or 0 for _, amount in receipts)
    assert await money(world) == (0, hold.spent)
    assert await world.rows("SELECT * FROM reviews") == []


@pytest.mark.req("GRAPH-06", error=True)
async def test_whoever_has_spent_what_it_may_not_begins_no_other_call(world: World) -> None:
    begun = []

    async def graph(call: GraphCall) -> Any:
        for number in range(5):
            call.check_lease()
            begun.append(number)
            yield used(PAID, f"u{number}")

    home = await house(world.queue, graph)

    failed = await home.executions.execute(home.asks(max_cost=0))

    assert (failed.error_code, begun) == ("may_spend_nothing", [0])


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_schedule_that_could_never_run_is_not_saved(world: World) -> None:
    home = await house(world.queue, lambda: None)
    given = {"graph_id": GRAPH, "grant_id": home.grant_id, "max_cost": "0"}

    def target(model: str | None) -> Target:
        return Target(kind="graph.run", params={**given, "input": {} if model is None else {"model": model}})

    schedules = world.queue.schedules
    with pytest.raises(InvalidInput, match=r"params\.max_cost: is 0, and model 'gpt-4o' is not among the free ones"):
        await schedules.create(owner="ann", schedule_id="news", cadence=every("1h"), target=target(PAID))
    assert await schedules.list(owner="ann") == []
    for name, model in (("free", FREE), ("none", None)):
        await schedules.create(owner="ann", schedule_id=name, cadence=every("1h"), target=target(model))
    with pytest.raises(InvalidInput, match=r"params\.max_cost"):
        await schedules.edit("free", owner="ann", target=target(PAID))
