"""Calls of graphs, and what comes of them."""

from collections.abc import Callable
from typing import Any

from duly.domain.executions import GraphResult
from duly.domain.instants import SECOND, Instant
from duly.graphs.registry import Registry
from duly.graphs.router import Provider, Router
from duly.ports.graphs import GraphCall, GraphCaller, GraphEvent
from duly.system.clock import SystemClock


def _always() -> None:
    return None


def call_of(graph_id: str, *, check_lease: Callable[[], None] = _always, **given: Any) -> GraphCall:
    defaults: dict[str, Any] = {
        "run_id": "exe_1",
        "ingress_request_id": "req_1",
        "input": {},
        "caller": GraphCaller(user="ann", account="acct_1", virtual_key_id="vkey_1"),
        "deadline": Instant(SystemClock().now() + 60 * SECOND),
    }
    return GraphCall(graph_id=graph_id, check_lease=check_lease, **{**defaults, **given})


async def run(provider: Provider, found_at: Any, call: GraphCall) -> tuple[list[GraphEvent], GraphResult]:
    """Drained, then its result."""
    registry = Registry()
    registry.add(call.graph_id, found_at)
    running = Router(registry, {call.graph_id.partition(":")[0]: provider}).run_graph(call)
    events = [event async for event in running]
    return events, await running.final()


def told(events: list[GraphEvent]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.kind.value, dict(event.data)) for event in events]
