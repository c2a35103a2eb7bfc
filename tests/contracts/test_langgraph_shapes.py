"""LangGraph's graphs as its documentation shapes them, unchanged, on every store: streamed, charged, reviewed."""

from collections.abc import Sequence
from typing import Any

import pytest

from duly.domain.amounts import UNIT
from duly.domain.executions import EventKind, Execution, ExecutionRequest, ExecutionStatus
from duly.domain.payloads import value_of
from duly.domain.reviews import Decision, Review, Verdict
from tests.contracts.graphs import House, PatientClock, house, service
from tests.contracts.world import World

GRAPH = "langgraph:g"
PLACE = "tests.adapters.graphs.shapes"
PER_TOKEN = 10


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


class Run:
    """One execution of a graph, asked for as often as it takes."""

    def __init__(self, home: House, request: ExecutionRequest) -> None:
        self.home = home
        self.request = request
        self.decided: list[Review] = []

    async def go(self) -> Execution:
        return await self.home.executions.execute(self.request)

    async def questions(self, execution: Execution) -> Sequence[Review]:
        assert execution.status is ExecutionStatus.WAITING, execution.error_message
        found = await self.home.queue.reviews.of_run(execution.run_id, owner="ann")
        return sorted((each for each in found if each.is_open), key=lambda each: each.question)

    async def answer(self, review: Review, value: Any) -> None:
        verdict = Verdict.APPROVE if value is True else Verdict.EDIT
        decision = Decision(verdict=verdict, value=None if value is True else value, by="ann")
        self.decided.append(await self.home.queue.reviews.decide(review.id, decision, owner="ann"))

    async def told(self, execution: Execution) -> list[EventKind]:
        return [event.kind for event in await self.home.executions.events(execution.run_id, owner="ann")]


async def run_of(world: World, name: str, **given: Any) -> Run:
    home = await house(world.queue, None)
    home.executions = service(world.queue, f"{PLACE}:{name}", graph_id=GRAPH)
    return Run(home, home.asks(graph_id=GRAPH, input=given, max_cost=UNIT))


def output(execution: Execution) -> Any:
    assert execution.ok, execution.error_message
    assert execution.result is not None
    return value_of(execution.result)


async def charged(world: World, run: Run) -> int:
    return (await world.queue.accounts.get(run.home.account_id, owner=None)).balance.charged


@pytest.mark.req("GRAPH-30")
@pytest.mark.parametrize(("topic", "text"), [("seas", "ABOUT SEAS"), ("sea", "(about sea)")])
async def test_a_graph_that_branches(world: World, topic: str, text: str) -> None:
    run = await run_of(world, "branching", topic=topic)

    execution = await run.go()

    assert output(execution)["text"] == text
    told = await run.told(execution)
    assert {EventKind.TOKEN, EventKind.UPDATE, EventKind.USAGE, EventKind.LOG} <= set(told)
    # One word asked, two answered.
    assert (told.count(EventKind.USAGE), await charged(world, run)) == (1, 3 * PER_TOKEN)


@pytest.mark.req("GRAPH-29")
@pytest.mark.req("GRAPH-30")
async def test_a_graph_within_a_graph_that_asks_there(world: World) -> None:
    run = await run_of(world, "nested", topic="sea")
    waiting = await run.go()
    (asked,) = await run.questions(waiting)
    assert value_of(asked.question) == {"continue": "about sea"}
    await run.answer(asked, "yes")

    execution = await run.go()

    assert output(execution)["text"] == "about sea: yes!"
    # The model was asked once, before the question, and is not asked again.
    assert await charged(world, run) == 3 * PER_TOKEN


@pytest.mark.req("GRAPH-30")
async def test_each_model_call_of_a_graph_that_maps_is_charged(world: World) -> None:
    run = await run_of(world, "mapped", topics=["a", "b", "c"])

    execution = await run.go()

    assert output(execution)["notes"] == ["about a", "about b", "about c"]
    assert (await run.told(execution)).count(EventKind.USAGE) == 3
    assert await charged(world, run) == 9 * PER_TOKEN
    assert await world.rows("SELECT count(*) FROM charge_receipts") == [(3,)]


@pytest.mark.req("GRAPH-29")
async def test_questions_of_parallel_branches_are_each_answered_by_their_own_answer(world: World) -> None:
    run = await run_of(world, "asking_twice_at_once")
    first, second = await run.questions(await run.go())
    assert [each.question for each in (first, second)] == ['"first?"', '"second?"']

    await run.answer(second, 2)
    assert [each.id for each in await run.questions(await run.go())] == [first.id]
    await run.answer(first, 1)

    assert output(await run.go())["text"] == "first 1, second 2"


@pytest.mark.req("GRAPH-29")
async def test_a_node_that_asks_again_gets_the_answer_to_what_it_asked_last(world: World) -> None:
    run = await run_of(world, "insisting")
    (first,) = await run.questions(await run.go())
    await run.answer(first, "old")
    (again,) = await run.questions(await run.go())
    assert again.question == "\"'old' is not an age. How old are you?\""
    assert again.question_id != first.question_id
    await run.answer(again, 42)

    execution = await run.go()

    assert (output(execution)["text"], execution.attempt) == ("42 years", 3)


@pytest.mark.parametrize(("answer", "text"), [(True, "went"), (False, "stopped")])
async def test_an_answer_chooses_the_way(world: World, answer: bool, text: str) -> None:
    run = await run_of(world, "routed")
    (asked,) = await run.questions(await run.go())
    await run.answer(asked, answer)

    assert output(await run.go())["text"] == text


@pytest.mark.req("GRAPH-29")
@pytest.mark.req("GRAPH-30")
async def test_an_agent_whose_tool_asks_before_it_acts(world: World) -> None:
    run = await run_of(world, "agent", messages=[{"role": "user", "content": "the weather of Oslo?"}])
    (asked,) = await run.questions(await run.go())
    assert value_of(asked.question) == {"tell": "Oslo"}
    await run.answer(asked, True)

    execution = await run.go()

    said = [(each["type"], each["content"]) for each in output(execution)["messages"]]
    assert said == [
        ("human", "the weather of Oslo?"),
        ("ai", ""),
        ("tool", "rain in Oslo"),
        ("ai", "rain in Oslo"),
    ]
    assert (await run.told(execution)).count(EventKind.USAGE) == 2
    assert await world.rows("SELECT count(*) FROM charge_receipts WHERE amount > 0") == [(2,)]
    await world.keeps_the_laws()
