"""A graph of actions without cycles: nodes, what each needs, and what its inputs refer to. Checked in linear time."""

import difflib
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from duly.domain.errors import InvalidInput
from duly.domain.retries import RetryPolicy
from duly.domain.texts import storable_of, whole_number_of

MOST_NODES = 1_000
MOST_EDGES = 10_000
LONGEST_CHAIN = 200
NODE_TIMEOUT_MS = 300_000
LONGEST_NODE_TIMEOUT_MS = 24 * 3_600_000
NODE_RETRY = RetryPolicy(max_attempts=3, backoff_ms=1_000, backoff_cap_ms=60_000)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_ACTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[][!-?A-~]{0,1999}", re.ASCII)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_OWN_HEADERS = frozenset({"content-length", "host", "transfer-encoding", "connection"})
_MOST_HEADERS = 50
_NODE_FIELDS = ("id", "action", "inputs", "needs", "retries", "timeout_ms")
_RETRY_FIELDS = ("max_attempts", "backoff_ms", "backoff_cap_ms")
_HTTP_FIELDS = ("method", "url", "headers")


@dataclass(frozen=True, slots=True)
class Result:
    """`{"from": node, "path": "result.x"}`: what an earlier node answered, or a part of it."""

    node: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Param:
    """`{"param": name, "default": value}`: what the run was given."""

    name: str
    default: Any = None
    is_needed: bool = True


@dataclass(frozen=True, slots=True)
class HttpCall:
    """What an HTTP action asks of a server; its inputs are the body, or the query where there is no body."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`needs` holds what its inputs refer to, too."""

    id: str
    action: str | HttpCall
    inputs: Mapping[str, Any]
    needs: tuple[str, ...]
    retry: RetryPolicy = NODE_RETRY
    timeout_ms: int = NODE_TIMEOUT_MS


def nodes_of(given: object) -> tuple[Node, ...]:
    """In an order in which each comes after what it needs; of nodes that may come in any order, as they were given."""
    if not isinstance(given, list):
        raise InvalidInput("nodes", f"is a {type(given).__name__}", fix="give a list of nodes")
    if not 1 <= len(given) <= MOST_NODES:
        raise InvalidInput("nodes", f"has {len(given)} nodes", fix=f"use 1 to {MOST_NODES}, or several workflows")
    nodes = {}
    for index, each in enumerate(given):
        node = _node_of(each, f"nodes[{index}]")
        if node.id in nodes:
            raise InvalidInput(f"nodes[{index}].id", f"{node.id!r} is there twice", fix="give each node an id")
        nodes[node.id] = node
    if (edges := sum(len(node.needs) for node in nodes.values())) > MOST_EDGES:
        raise InvalidInput("nodes", f"has {edges} dependencies", fix=f"use at most {MOST_EDGES}")
    for index, node in enumerate(nodes.values()):
        _require_there(node, nodes, f"nodes[{index}]")
    return _in_order(nodes)


def _node_of(given: object, at: str) -> Node:
    fields = fields_of(given, _NODE_FIELDS, at, needed=("id", "action"))
    node_id = fields["id"]
    if not isinstance(node_id, str) or not _ID.fullmatch(node_id):
        raise InvalidInput(f"{at}.id", f"{node_id!a:.60} is no id", fix="use 1 to 64 of A-Z a-z 0-9 _ -")
    inputs = _inputs_of(fields.get("inputs"), f"{at}.inputs")
    meant = [found.node for where, found in references_in(inputs, f"{at}.inputs") if isinstance(found, Result)]
    return Node(
        id=node_id,
        action=_action_of(fields["action"], f"{at}.action"),
        inputs=inputs,
        needs=tuple(dict.fromkeys([*_needs_of(fields.get("needs"), f"{at}.needs"), *meant])),
        retry=_retry_of(fields.get("retries"), f"{at}.retries"),
        timeout_ms=whole_number_of(
            fields.get("timeout_ms", NODE_TIMEOUT_MS), field=f"{at}.timeout_ms", least=1, most=LONGEST_NODE_TIMEOUT_MS
        ),
    )


def _inputs_of(given: object, at: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidInput(at, f"is a {type(given).__name__}", fix="give each input a name")
    return given


def _needs_of(given: object, at: str) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise InvalidInput(at, "is no list of node ids", fix='write it as ["fetch", "read"]')
    return given


def _retry_of(given: object, at: str) -> RetryPolicy:
    if given is None:
        return NODE_RETRY
    fields = fields_of(given, _RETRY_FIELDS, at)
    try:
        return RetryPolicy(**{name: fields.get(name, getattr(NODE_RETRY, name)) for name in _RETRY_FIELDS})
    except InvalidInput as error:
        raise InvalidInput(f"{at}.{error.field}", error.reason, fix=error.fix) from None


def _action_of(given: object, at: str) -> str | HttpCall:
    if isinstance(given, dict):
        return http_of(fields_of(given, ("http",), at, needed=("http",))["http"], f"{at}.http")
    if not isinstance(given, str) or not _ACTION.fullmatch(given):
        raise InvalidInput(at, f"{given!a:.60} is no action", fix='name one that is registered, or give {"http": …}')
    return given


def http_of(given: object, at: str) -> HttpCall:
    fields = fields_of(given, _HTTP_FIELDS, at, needed=("url",))
    method, url = fields.get("method", "POST"), fields["url"]
    if method not in METHODS:
        raise InvalidInput(f"{at}.method", f"{method!a:.40} is no method", fix=f"use one of {', '.join(METHODS)}")
    return HttpCall(method, address_of(url, f"{at}.url"), _headers_of(fields.get("headers"), f"{at}.headers"))


def address_of(url: object, at: str) -> str:
    """Without a name and password in it: what is stored is shown to whoever may look."""
    if not isinstance(url, str) or not _ADDRESS.fullmatch(url):
        raise InvalidInput(at, f"{url!a:.80} is no address", fix="write it as https://host/path, with no @ in it")
    return url


def _headers_of(given: object, at: str) -> Mapping[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or len(given) > _MOST_HEADERS:
        raise InvalidInput(at, "are no headers", fix=f"give at most {_MOST_HEADERS} names with their values")
    for name, value in given.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise InvalidInput(at, f"{name!a:.60} is no header to set", fix="leave it out")
        storable_of(value, field=f"{at}.{name}", longest=8_000)
        if not value.isascii() or not value.isprintable():
            raise InvalidInput(f"{at}.{name}", "is no header's value", fix="use one line of ASCII")
    return given


def fields_of(given: object, known: Sequence[str], at: str, *, needed: Sequence[str] = ()) -> Mapping[str, Any]:
    """What has no meaning is refused: a misspelt retry would be one that never happens."""
    if not isinstance(given, dict):
        raise InvalidInput(at, f"is a {type(given).__name__}", fix=f"give an object with {', '.join(known)}")
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
            raise InvalidInput(at, f"has no field {str(name)[:40]!r}", fix=fix)
    for name in needed:
        if name not in given:
            raise InvalidInput(f"{at}.{name}", "is missing")
    return given


# References


def references_in(value: object, at: str) -> Iterator[tuple[str, Result | Param]]:
    """Every reference, with its place; what is below `literal` is none."""
    if isinstance(value, dict):
        if value.keys() == {"literal"}:
            return
        if (found := _reference_of(value, at)) is not None:
            yield at, found
            return
        for name, item in value.items():
            yield from references_in(item, f"{at}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from references_in(item, f"{at}[{index}]")


def _reference_of(value: Mapping[str, Any], at: str) -> Result | Param | None:
    if "from" in value and value.keys() <= {"from", "path"}:
        return Result(_name_in(value, "from", at), _path_of(value.get("path", "result"), f"{at}.path"))
    if "param" in value and value.keys() <= {"param", "default"}:
        return Param(_name_in(value, "param", at), value.get("default"), "default" not in value)
    return None


def _name_in(value: Mapping[str, Any], name: str, at: str) -> str:
    if not isinstance(value[name], str):
        raise InvalidInput(f"{at}.{name}", "is no name", fix='if this is data, write {"literal": …}')
    return str(value[name])


def _path_of(path: object, at: str) -> tuple[str, ...]:
    if not isinstance(path, str) or path.split(".")[0] != "result":
        raise InvalidInput(at, f"{path!a:.60} leads nowhere", fix="begin with result, as in result.text")
    return tuple(path.split(".")[1:])


def resolved(value: Any, results: Mapping[str, Any], params: Mapping[str, Any], *, at: str = "inputs") -> Any:
    """With what references lead to in their places; one that leads nowhere is refused, and says where it broke off."""
    if isinstance(value, dict):
        if value.keys() == {"literal"}:
            return value["literal"]
        found = _reference_of(value, at)
        if isinstance(found, Param):
            return _given(found, params, at)
        if found is not None:
            return _below(results[found.node], found, at)
        return {name: resolved(item, results, params, at=f"{at}.{name}") for name, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, results, params, at=f"{at}[{index}]") for index, item in enumerate(value)]
    return value


def _given(param: Param, params: Mapping[str, Any], at: str) -> Any:
    if param.name in params:
        return params[param.name]
    if param.is_needed:
        raise InvalidInput(at, f"the run was given no {param.name!r}")
    return param.default


def _below(value: Any, reference: Result, at: str) -> Any:
    for step in reference.path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise InvalidInput(at, f"node {reference.node!r} has no result.{'.'.join(reference.path)}: no {step!r}")
    return value


def params_needed(nodes: Sequence[Node]) -> Mapping[str, str]:
    """The params that a run must be given, and where the first reference to each stands."""
    needed: dict[str, str] = {}
    for node in nodes:
        for where, found in references_in(node.inputs, f"{node.id}.inputs"):
            if isinstance(found, Param) and found.is_needed:
                needed.setdefault(found.name, where)
    return needed


# Order


def _require_there(node: Node, nodes: Mapping[str, Node], at: str) -> None:
    for needed in node.needs:
        if needed not in nodes:
            near = difflib.get_close_matches(needed, list(nodes)[:200], n=1)
            raise InvalidInput(
                f"{at}.needs",
                f"node {node.id!r} needs {needed[:64]!r}, which is not there",
                fix=f"did you mean {near[0]!r}?" if near else None,
            )


def _in_order(nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    waits = {node.id: len(node.needs) for node in nodes.values()}
    followers: dict[str, list[str]] = {name: [] for name in nodes}
    for node in nodes.values():
        for needed in node.needs:
            followers[needed].append(node.id)
    ready, order, depth = deque(name for name, count in waits.items() if not count), [], dict.fromkeys(nodes, 1)
    while ready:
        name = ready.popleft()
        order.append(nodes[name])
        for follower in followers[name]:
            depth[follower] = max(depth[follower], depth[name] + 1)
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    if len(order) < len(nodes):
        raise _cycle(nodes, {name for name, count in waits.items() if count})
    if (deepest := max(depth.values())) > LONGEST_CHAIN:
        raise InvalidInput("nodes", f"has {deepest} nodes one after the other", fix=f"use at most {LONGEST_CHAIN}")
    return tuple(order)


def _cycle(nodes: Mapping[str, Node], left: set[str]) -> InvalidInput:
    """Whoever is left needs somebody who is left: following that must come round."""
    path: dict[str, int] = {}
    name = next(each for each in nodes if each in left)
    while name not in path:
        path[name] = len(path)
        name = next(each for each in nodes[name].needs if each in left)
    found = [*list(path)[path[name] :], name]
    shown = found if len(found) <= 20 else [*found[:18], "…", name]
    return InvalidInput("nodes", f"goes round in a circle: {' needs '.join(shown)}", fix="take one of these needs out")
