"""LangGraph's graphs, run for real: streamed, metered, checkpointed in Duly's own store."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from duly.application.checkpoints import Checkpoints
from duly.domain.executions import EventKind, GraphFailed, GraphResult, Reply
from duly.graphs.plain import plain
from duly.graphs.registry import Registry
from duly.graphs.telling import Tell, Told, told_by
from duly.ports.graphs import GraphCall, GraphEvent

# `values` is not told: its last one is the result.
_MODES = ["updates", "messages", "custom", "tasks", "values"]
_INTERRUPT = "__interrupt__"


class LangGraphs:
    """A graph, compiled or not, or a function without parameters that makes one.

    Its thread is the run, so an attempt that takes over finds what the last one left. One that was compiled with a
    checkpointer of its own keeps that.
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints

    async def run(self, call: GraphCall, registry: Registry) -> AsyncGenerator[Told, None]:
        found = await registry.load(call.graph_id)
        async for told in told_by(lambda tell: self._streamed(found, call, tell)):
            yield told

    async def _streamed(self, found: Any, call: GraphCall, tell: Tell) -> GraphResult:
        # Only where a LangGraph graph was loaded already: it takes seconds.
        from duly.graphs.langgraph_checkpoints import DulySaver  # noqa: PLC0415
        from duly.graphs.langgraph_usage import Meter  # noqa: PLC0415

        graph = _compiled(found, DulySaver(self._checkpoints, call), call.graph_id)
        config = {
            "configurable": {"thread_id": call.run_id, "model": call.model, "user_id": call.caller.user},
            "callbacks": [Meter(call.check_model, tell)],
            "run_name": call.graph_id,
            "metadata": {"run_id": call.run_id, "attempt": call.attempt},
        }
        values: Any = None
        given = await _given(graph, call, config)
        async for mode, data in graph.astream(given, config, stream_mode=_MODES, durability="sync"):
            if mode == "values":
                values = data
            for event in _events(mode, data):
                tell(event)
        return _result(values, await _pending(graph, config, values))


def _compiled(found: Any, saver: Any, graph_id: str) -> Any:
    from langgraph.graph import StateGraph  # noqa: PLC0415
    from langgraph.pregel import Pregel  # noqa: PLC0415

    made = found() if callable(found) and not isinstance(found, (StateGraph, Pregel)) else found
    if isinstance(made, StateGraph):
        return made.compile(checkpointer=saver)
    if isinstance(made, Pregel):
        return made.copy({"checkpointer": saver}) if made.checkpointer is None else made
    raise GraphFailed(f"{graph_id} is a {type(made).__name__}, no graph of LangGraph's")


async def _given(graph: Any, call: GraphCall, config: Any) -> Any:
    state = await graph.aget_state(config) if call.continues else None
    if state is not None and call.reply is not None and (resume := _answers(state, call.reply)):
        from langgraph.types import Command  # noqa: PLC0415

        return Command(resume=resume)
    if state is not None and state.next:
        return None
    given = {name: value for name, value in call.input.items() if name not in ("messages", "model")}
    return {**given, "messages": list(call.messages)} if call.messages else given


def _answers(state: Any, reply: Reply) -> dict[str, Any]:
    """By the questions' ids, so that a reply never answers a later question that nobody has seen."""
    return {each.id: reply.answers[each.id] for each in state.interrupts if each.id in reply.answers}


def _events(mode: str, data: Any) -> Iterator[GraphEvent]:
    match mode:
        case "messages":
            message, about = data
            text = message.content if isinstance(message.content, str) else ""
            if text and message.type.startswith("AI"):
                yield GraphEvent(EventKind.TOKEN, {"text": text, "node": about.get("langgraph_node")})
        case "updates" if _INTERRUPT in data:
            for interrupt in data[_INTERRUPT]:
                yield GraphEvent(EventKind.INTERRUPT, _asked(interrupt))
        case "updates":
            yield GraphEvent(EventKind.UPDATE, plain(data))
        case "custom":
            yield GraphEvent(EventKind.CUSTOM, {"value": plain(data)})
        case "tasks":
            yield GraphEvent(EventKind.LOG, _task(data))


def _task(data: Any) -> dict[str, Any]:
    about = {"task": data.get("name"), "id": data.get("id"), "event": "started" if "input" in data else "ended"}
    return {**about, "error": str(data["error"])[:500]} if data.get("error") else about


def _asked(interrupt: Any) -> dict[str, Any]:
    return {"id": interrupt.id, "value": plain(interrupt.value)}


async def _pending(graph: Any, config: Any, values: Any) -> Sequence[Any]:
    """All that is asked: branches that ask at once each say so by themselves, and only the last of them is heard."""
    if not isinstance(values, dict) or not (heard := values.get(_INTERRUPT)):
        return ()
    state = await graph.aget_state(config)
    return tuple(state.interrupts or heard)


def _result(values: Any, interrupts: Sequence[Any]) -> GraphResult:
    if interrupts:
        return GraphResult(output={"interrupts": [_asked(each) for each in interrupts]}, waits=True)
    return GraphResult(output=plain(values))
