"""Graphs that a program declares, and what their runs are given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duly.app.durations import Duration, ms_of
from duly.bootstrap import Registry
from duly.domain.amounts import parse_amount, written_amount
from duly.domain.errors import InvalidInput
from duly.domain.executions import (
    GRAPH_POOL,
    GRAPH_RETRY,
    LONGEST_REVIEW_MS,
    LONGEST_TIMEOUT_MS,
    OnCrash,
    Silence,
    graph_id_of,
)
from duly.domain.payloads import json_of, payload_of

POOL, RETRY = GRAPH_POOL, GRAPH_RETRY


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


def terms_of(within: Duration | None, default: str | None, value: Any) -> dict[str, Any]:
    """How long what a graph asks may wait, and what counts then."""
    if default is not None and default not in list(Silence):
        raise InvalidInput("review_default", f"{default!r:.40} is none", fix=f"use one of {', '.join(Silence)}")
    if (default == Silence.EDIT) != (value is not None):
        raise InvalidInput(
            "review_value", "goes with the default `edit`, and with no other", fix="give both or neither"
        )
    json_of(value, field="review_value")
    terms = {
        "review_within_ms": None
        if within is None
        else ms_of(within, field="review_within", least=1, most=LONGEST_REVIEW_MS),
        "review_default": default,
        "review_value": value,
    }
    return {name: given for name, given in terms.items() if given is not None}


def _provider_of(graph: Any) -> str:
    """A place alone says nothing of what is there; most graphs are LangGraph's."""
    if isinstance(graph, str) or type(graph).__module__.partition(".")[0] == "langgraph":
        return "langgraph"
    return "python"
