"""What a schedule's target says about a graph: which one, with which model, and under whose grant."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from duly.domain.amounts import Amount, parse_amount
from duly.domain.errors import InvalidInput
from duly.domain.executions import DEFAULT_MODEL, GRAPH_RUN, ExecutionRequest, OnCrash, Silence, graph_id_of
from duly.domain.payloads import value_of
from duly.domain.schedules import Target
from duly.domain.texts import text_of

_GRANT = "grant_id"
_TERMS = frozenset({"on_crash", "timeout_ms", "review_within_ms", "review_default", "review_value"})
_KNOWN = frozenset({"graph_id", _GRANT, "input", "max_cost"}) | _TERMS


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTarget:
    """`model` is none if the graph has its own, and `grant_id` until there is one."""

    graph_id: str
    model: str | None
    grant_id: str | None
    max_cost: Amount | None = None


def graph_target_of(target: Target) -> GraphTarget | None:
    """None for what is no graph; what no execution service would take is refused before it is saved."""
    if target.kind != GRAPH_RUN:
        return None
    params = _params_of(target)
    if strange := sorted(set(params) - _KNOWN):
        raise InvalidInput(f"params.{strange[0][:40]}", "is unknown to graphs", fix=f"use {', '.join(sorted(_KNOWN))}")
    graph_id, given = params.get("graph_id"), params.get("input") or {}
    if graph_id is None:
        raise InvalidInput("params.graph_id", "is missing", fix="name the graph as provider:name")
    if not isinstance(given, Mapping):
        raise InvalidInput("params.input", f"is a {type(given).__name__}", fix="pass an object")
    grant_id, max_cost = params.get(_GRANT), params.get("max_cost")
    if grant_id is not None:
        text_of(grant_id, field=f"params.{_GRANT}")
    most = None if max_cost is None else parse_amount(max_cost, field="params.max_cost")
    asked = ExecutionRequest(
        key="-", graph_id=graph_id_of(graph_id), grant_id=grant_id or "-", input=given, **_terms_of(params)
    )
    model = None if asked.model == DEFAULT_MODEL else asked.model
    return GraphTarget(graph_id=asked.graph_id, model=model, grant_id=grant_id, max_cost=most)


def _terms_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """What is left out, or null, has its default."""
    terms = {name: params[name] for name in _TERMS if params.get(name) is not None}
    for name, kind in (("on_crash", OnCrash), ("review_default", Silence)):
        if name in terms and terms[name] not in list(kind):
            raise InvalidInput(f"params.{name}", f"{ascii(terms[name])[:40]} is none", fix=f"use {', '.join(kind)}")
        if name in terms:
            terms[name] = kind(terms[name])
    return terms


def grant_of(target: Target) -> str | None:
    """The grant that a graph's target names."""
    found = _params_of(target).get(_GRANT) if target.kind == GRAPH_RUN else None
    return found if isinstance(found, str) else None


def granted(target: Target, grant_id: str) -> Target:
    """Under that grant: the jobs of its runs carry it with them."""
    return replace(target, params={**_params_of(target), _GRANT: grant_id})


def is_alike(target: Target, asked: Target) -> bool:
    """Whether it is what was asked for, with a grant besides if none was named."""
    grant_id = grant_of(target)
    if grant_id is None or asked.kind != GRAPH_RUN or grant_of(asked) is not None:
        return target == asked
    return target == granted(asked, grant_id)


def _params_of(target: Target) -> Mapping[str, Any]:
    params: Mapping[str, Any] = value_of(target.payload)
    return params
