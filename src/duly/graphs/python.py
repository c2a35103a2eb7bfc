"""Functions as graphs: plain or async, answering once or telling as they go."""

import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from typing import Any

from duly.domain.executions import EventKind, GraphFailed, GraphResult
from duly.graphs.registry import Registry
from duly.graphs.telling import Tell, Told, told_by
from duly.graphs.threads import in_own_thread
from duly.ports.graphs import GraphCall, GraphEvent


class PythonGraphs:
    """A function is given what its parameters name: `input`, `messages`, `model`, `call`, `tell`; else its input.

    What it returns is the result. A generator tells what it yields: events as they are, other values as custom ones,
    and a `GraphResult` is its result. Plain functions run in a thread, where they cannot be stopped.
    """

    async def run(self, call: GraphCall, registry: Registry) -> AsyncGenerator[Told, None]:
        function = await registry.load(call.graph_id)
        if not callable(function):
            raise GraphFailed(f"{call.graph_id} is a {type(function).__name__}, which cannot be called")
        if inspect.isasyncgenfunction(function):
            async for each in _yielded(function, call):
                yield each
            return
        async for told in told_by(lambda tell: _called(function, call, tell)):
            yield told


async def _yielded(function: Callable[..., Any], call: GraphCall) -> AsyncGenerator[Told, None]:
    result = GraphResult()
    generator = function(**_arguments(function, call, _no_tell))
    try:
        async for each in generator:
            if isinstance(each, GraphResult):
                result = each
            else:
                yield _event_of(each)
    finally:
        await generator.aclose()
    yield result


async def _called(function: Callable[..., Any], call: GraphCall, tell: Tell) -> GraphResult:
    arguments = _arguments(function, call, tell)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - of an object, not whether
        return _result_of(await function(**arguments))
    if inspect.isgeneratorfunction(function):
        return await in_own_thread(lambda: _drained(function(**arguments), tell), name=call.graph_id)
    return _result_of(await in_own_thread(lambda: function(**arguments), name=call.graph_id))


def _drained(generator: Any, tell: Tell) -> GraphResult:
    result: GraphResult | None = None
    with closing(generator):
        while True:
            try:
                each = next(generator)
            except StopIteration as end:
                return result or _result_of(end.value)
            if isinstance(each, GraphResult):
                result = each
            else:
                tell(_event_of(each))


def _arguments(function: Callable[..., Any], call: GraphCall, tell: Tell) -> dict[str, Any]:
    offered = {
        "input": dict(call.input),
        "messages": list(call.messages),
        "model": call.model,
        "call": call,
        "tell": tell,
    }
    parameters = inspect.signature(function).parameters
    given = {name: value for name, value in offered.items() if name in parameters}
    if "input" not in given and (unnamed := [name for name in parameters if name not in offered]):
        given[unnamed[0]] = offered["input"]
    return given


def _result_of(value: Any) -> GraphResult:
    return value if isinstance(value, GraphResult) else GraphResult(output=value)


def _event_of(value: Any) -> GraphEvent:
    return value if isinstance(value, GraphEvent) else GraphEvent(EventKind.CUSTOM, {"value": value})


def _no_tell(_: GraphEvent) -> None:
    raise GraphFailed("an async generator tells by yielding")
