"""Graphs that a program declares, and what their runs are given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duly.bootstrap import Registry
from duly.domain.amounts import parse_amount, written_amount
from duly.domain.errors import InvalidInput
from duly.domain.executions import LONGEST_TIMEOUT_MS, OnCrash, graph_id_of
from duly.domain.ids import PoolName
from duly.domain.payloads import payload_of
from duly.domain.retries import RetryPolicy

POOL = PoolName("graphs")
# Under the same key each of them has the same outcome, so they only make up for workers that died.
RETRY = RetryPolicy(max_attempts=5, backoff_ms=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredGraph:
    """`schedule_id` is none for a graph that only runs when it is called."""

    id: str
    schedule_id: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def graph_of(
    name: str,
    graph: Any,
    registry: Registry,
    *,
    graph_input: Mapping[str, Any] | None,
    model: str | None,
    max_cost: str | None,
    on_crash: str,
    timeout_ms: int | None,
) -> tuple[str, dict[str, Any]]:
    """Registers it; answers its id, and the params of the job that has it executed."""
    graph_id = graph_id_of(name if ":" in name else f"{_provider_of(graph)}:{name}")
    if on_crash not in list(OnCrash):
        raise InvalidInput("on_crash", f"{on_crash!r:.40} is none", fix=f"use one of {', '.join(OnCrash)}")
    if timeout_ms is not None and timeout_ms > LONGEST_TIMEOUT_MS:
        raise InvalidInput("timeout", "is longer than a day", fix="let it end sooner, or in parts")
    asked = {**(graph_input or {}), **({} if model is None else {"model": model})}
    payload_of(asked, field="input")
    params: dict[str, Any] = {"graph_id": graph_id, "input": asked, "on_crash": on_crash}
    if max_cost is not None:
        params["max_cost"] = written_amount(parse_amount(max_cost, field="max_cost"))
    if timeout_ms is not None:
        params["timeout_ms"] = timeout_ms
    registry.add(graph_id, graph)
    return graph_id, params


def _provider_of(graph: Any) -> str:
    """A place alone says nothing of what is there; most graphs are LangGraph's."""
    if isinstance(graph, str) or type(graph).__module__.partition(".")[0] == "langgraph":
        return "langgraph"
    return "python"
