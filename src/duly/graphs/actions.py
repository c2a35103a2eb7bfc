"""What a node does: a function that a program has registered, or a call of a server."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from duly.domain.dags import HttpCall, Node
from duly.domain.errors import InvalidInput
from duly.domain.executions import GraphFailed
from duly.domain.instants import SECOND, Instant
from duly.graphs.registry import Registry
from duly.graphs.telling import Tell
from duly.graphs.threads import in_own_thread
from duly.ports.clock import Clock
from duly.ports.graphs import GraphCall, GraphEvent

_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_IN_QUERY = ("GET", "DELETE")
# Trying again may help where the server is busy or broken, not where it refuses.
_AGAIN = frozenset({408, 409, 425, 429})


class ActionFailed(GraphFailed):
    """`again`: whether another try could end otherwise."""

    def __init__(self, message: str, *, error_code: str = "action_failed", again: bool = True) -> None:
        super().__init__(message, error_code=error_code)
        self.again = again


async def called(node: Node, inputs: Mapping[str, Any], call: GraphCall, registry: Registry, tell: Tell) -> Any:
    """A registered function, with its inputs by name; `inputs`, `call` and `tell` if it asks for them.

    An async one runs in the loop, any other in a thread, where it cannot be stopped.
    """
    name = str(node.action)
    function = await registry.action(name)
    arguments = _arguments(function, inputs, {"inputs": dict(inputs), "call": call, "tell": tell}, name)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - of an object, not whether
        return await function(**arguments)
    answer = await in_own_thread(lambda: function(**arguments), name=f"{call.run_id} {node.id}")
    return await answer if inspect.isawaitable(answer) else answer


def _arguments(
    function: Callable[..., Any], inputs: Mapping[str, Any], offered: Mapping[str, Any], name: str
) -> dict[str, Any]:
    signature = inspect.signature(function)
    named = {each.name for each in signature.parameters.values() if each.kind not in _SEVERAL}
    asked = {each: value for each, value in offered.items() if each in named and each not in inputs}
    # Whoever takes all of them at once need not name each.
    given = asked if "inputs" in asked else {**inputs, **asked}
    try:
        signature.bind(**given)
    except TypeError as error:
        raise ActionFailed(f"action {name!r} does not take these inputs: {error}", again=False) from None
    return given


async def requested(
    http: HttpCall, inputs: Mapping[str, Any], *, key: str, until: Instant, clock: Clock, client: Any = None
) -> dict[str, Any]:
    """Status and body of what a server answered; anything but success is a failure."""
    # An HTTP client takes a tenth of a second to load.
    from duly.graphs.http import fetched  # noqa: PLC0415

    has_body = http.method not in _IN_QUERY
    content = json.dumps(inputs, ensure_ascii=False, separators=(",", ":")).encode() if has_body else None
    headers = {"idempotency-key": key, **({"content-type": "application/json"} if has_body else {}), **http.headers}
    left = max((until - clock.now()) / SECOND, 0.001)
    status, read = await fetched(
        http.method,
        http.url,
        headers=headers,
        content=content,
        params=None if has_body else _query(inputs),
        within_s=left,
        transport=client,
    )
    if not 200 <= status < 300:
        shown = repr(read[:200].decode("utf-8", "replace"))
        again = status in _AGAIN or status >= 500
        raise ActionFailed(f"{http.url} answered {status}: {shown}", error_code="action_refused", again=again)
    return {"status": status, "body": _body(read)}


def _query(inputs: Mapping[str, Any]) -> dict[str, str]:
    for name, value in inputs.items():
        if isinstance(value, (dict, list)):
            raise InvalidInput(f"inputs.{name}", "is no text for a query", fix="use a method that has a body")
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in inputs.items()}


def _body(read: bytes) -> Any:
    try:
        return json.loads(read)
    except (ValueError, RecursionError):
        return read.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def usage_told(body: object) -> list[GraphEvent]:
    """What a server says it used, as graphs elsewhere say it; what is said otherwise is only data."""
    from duly.graphs.http import usage_of  # noqa: PLC0415

    told = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(told, list):
        return []
    return [usage_of(each) for each in told if isinstance(each, dict) and isinstance(each.get("unit"), str)]
