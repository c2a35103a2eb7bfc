"""Functions as graphs: whatever their shape, their events come in order and their result last."""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator
from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.executions import EventKind, GraphFailed, GraphResult, UnknownGraph
from duly.graphs.python import PythonGraphs
from duly.graphs.registry import Registry
from duly.graphs.router import Router
from duly.graphs.telling import Tell
from duly.ports.graphs import GraphCall, GraphEvent
from tests.adapters.graphs.calls import call_of, run, told

LOG = GraphEvent(EventKind.LOG, {"text": "half"})


async def an_async_one(input: dict[str, Any], tell: Tell, model: str) -> dict[str, Any]:  # noqa: A002
    tell(LOG)
    await asyncio.sleep(0)
    tell(GraphEvent(EventKind.CUSTOM, {"value": 2}))
    return {"n": input["n"] + 1, "model": model}


def a_plain_one(input: dict[str, Any], tell: Tell, model: str) -> dict[str, Any]:  # noqa: A002
    assert threading.current_thread() is not threading.main_thread()
    tell(LOG)
    tell(GraphEvent(EventKind.CUSTOM, {"value": 2}))
    return {"n": input["n"] + 1, "model": model}


async def an_async_generator(given: dict[str, Any], model: str) -> AsyncIterator[Any]:
    yield LOG
    yield GraphResult(output={"n": given["n"] + 1, "model": model})
    yield 2


def a_generator(given: dict[str, Any], call: GraphCall) -> Generator[Any, None, Any]:
    yield LOG
    yield 2
    return {"n": given["n"] + 1, "model": call.model}


@pytest.mark.req("GRAPH-30")
@pytest.mark.parametrize("graph", [an_async_one, a_plain_one, an_async_generator, a_generator])
def test_events_come_in_order_and_the_result_last(graph: Any) -> None:
    call = call_of("python:graph", input={"n": 1}, model="gpt")

    events, result = asyncio.run(run(PythonGraphs(), graph, call))

    assert told(events) == [("log", {"text": "half"}), ("custom", {"value": 2})]
    assert result == GraphResult(output={"n": 2, "model": "gpt"})


@pytest.mark.parametrize("place", ["greet", "Kept.inner"])
def test_a_graph_is_loaded_from_its_place_when_it_runs(place: str) -> None:
    call = call_of("python:greet@2", input={"name": "ann"})

    _, result = asyncio.run(run(PythonGraphs(), f"tests.adapters.graphs.functions:{place}", call))

    assert result.output == {"greeting": "hello ann"}


@pytest.mark.parametrize("place", ["no.such.module:x", "tests.adapters.graphs.functions:nobody"])
def test_a_place_that_leads_nowhere_fails_the_run_and_says_so(place: str) -> None:
    with pytest.raises(GraphFailed, match="cannot be loaded from") as failure:
        asyncio.run(run(PythonGraphs(), place, call_of("python:x")))

    assert failure.value.error_code == "graph_unloadable"


@pytest.mark.req("GRAPH-30", error=True)
def test_a_result_is_not_known_before_the_events_are_drained() -> None:
    async def half() -> None:
        registry = Registry()
        registry.add("python:g", a_generator)
        running = Router(registry, {"python": PythonGraphs()}).run_graph(call_of("python:g", input={"n": 1}))
        async for _ in running:
            break
        await running.aclose()
        await running.final()

    with pytest.raises(GraphFailed, match="not drained"):
        asyncio.run(half())


def test_what_a_graph_raises_comes_after_what_it_told() -> None:
    async def bad(tell: Tell) -> None:
        tell(LOG)
        raise LookupError("no such town")

    heard: list[GraphEvent] = []

    async def drain() -> None:
        registry = Registry()
        registry.add("python:g", bad)
        async for event in Router(registry, {"python": PythonGraphs()}).run_graph(call_of("python:g")):
            heard.append(event)  # noqa: PERF401 - what came before it failed

    with pytest.raises(LookupError, match="no such town"):
        asyncio.run(drain())
    assert heard == [LOG]


def test_whoever_stops_listening_does_not_wait_for_a_graph_that_ignores_it() -> None:
    stopping = threading.Event()

    async def stubborn(tell: Tell) -> None:
        tell(LOG)
        while not stopping.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    async def left() -> bool:
        registry = Registry()
        registry.add("python:g", stubborn)
        running = Router(registry, {"python": PythonGraphs()}).run_graph(call_of("python:g"))
        async for _ in running:
            break
        await running.aclose()
        went_on = not stopping.is_set()
        stopping.set()
        return went_on

    assert asyncio.run(left())


@pytest.mark.parametrize("graph_id", ["python:other", "nobody:g", "python:g@2"])
def test_a_graph_that_nobody_registered_is_refused_before_anything_runs(graph_id: str) -> None:
    registry = Registry()
    registry.add("python:g", a_generator)

    with pytest.raises(UnknownGraph):
        Router(registry, {"python": PythonGraphs()}).run_graph(call_of(graph_id))


@pytest.mark.parametrize(
    ("graph_id", "place"), [("g", "a:b"), ("python:g", "a b"), ("python:g", "os"), ("A:g", "a:b"), ("http:g", "a:b")]
)
def test_a_name_or_place_that_says_nothing_is_refused(graph_id: str, place: str) -> None:
    with pytest.raises(InvalidInput):
        Registry().add(graph_id, place)


def test_a_graph_has_one_place() -> None:
    registry = Registry()
    registry.add("python:g", a_generator)

    with pytest.raises(InvalidInput, match="registered already"):
        registry.add("python:g", "a:b")
