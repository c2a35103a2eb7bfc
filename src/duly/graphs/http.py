"""Graphs that a service elsewhere runs: one signed call, bounded in time and in size."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from duly.domain.amounts import Amount, written_amount
from duly.domain.errors import InvalidInput
from duly.domain.executions import ErrorCode, EventKind, GraphFailed, GraphResult, ModelCall
from duly.domain.instants import SECOND
from duly.graphs.registry import Registry
from duly.graphs.telling import Told
from duly.ports.clock import Clock
from duly.ports.graphs import GraphCall, GraphEvent

LARGEST_ANSWER_BYTES = 4 * 1_048_576
CONNECT_WITHIN_S = 10.0
_SHORTEST_SECRET = 24


@dataclass(frozen=True, slots=True)
class HttpGraphs:
    """Signed as Standard Webhooks are: id, time stamp and body under a shared secret.

    The answer is `{"output": …, "waits": false, "events": […], "usage": […]}`; only `output` is needed.
    """

    clock: Clock
    secret: bytes
    transport: httpx2.AsyncBaseTransport | None = None

    def __post_init__(self) -> None:
        if len(self.secret) < _SHORTEST_SECRET:
            raise InvalidInput("secret", "is too short to sign with", fix=f"use at least {_SHORTEST_SECRET} bytes")

    async def run(self, call: GraphCall, registry: Registry) -> AsyncGenerator[Told, None]:
        body = _body_of(call)
        call.check_lease()
        answer = await self._answer(registry.place(call.graph_id), body, call)
        for each in _list(answer, "usage"):
            yield usage_of(each)
        for each in _list(answer, "events"):
            yield _event(each)
        yield GraphResult(output=answer.get("output"), waits=answer.get("waits") is True)

    async def _answer(self, url: str, body: bytes, call: GraphCall) -> dict[str, Any]:
        left = max((call.deadline - self.clock.now()) / SECOND, 0.001)
        status, read = await fetched(
            "POST", url, headers=self._headers(body, call), content=body, within_s=left, transport=self.transport
        )
        if status != 200:
            raise GraphFailed(f"the service answered {status}: {_shown(read)}")
        return _object(read)

    def _headers(self, body: bytes, call: GraphCall) -> dict[str, str]:
        name, at = f"{call.run_id}/{call.attempt}", str(self.clock.now() // SECOND)
        signed = b".".join((name.encode(), at.encode(), body))
        signature = base64.b64encode(hmac.new(self.secret, signed, hashlib.sha256).digest()).decode()
        return {
            "content-type": "application/json",
            "idempotency-key": name,
            "webhook-id": name,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{signature}",
            **({} if call.traceparent is None else {"traceparent": call.traceparent}),
        }


async def fetched(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    content: bytes | None = None,
    params: Mapping[str, str] | None = None,
    within_s: float,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> tuple[int, bytes]:
    """Status and body of one call, bounded in time and in size; a redirect is an answer, and not followed."""
    times = httpx2.Timeout(within_s, connect=min(CONNECT_WITHIN_S, within_s))
    try:
        async with (
            httpx2.AsyncClient(timeout=times, transport=transport, follow_redirects=False) as client,
            client.stream(method, url, content=content, params=params, headers=dict(headers)) as response,
        ):
            return response.status_code, await _read(response)
    except httpx2.TimeoutException as error:
        raise GraphFailed("the service did not answer in time", error_code=ErrorCode.TIMEOUT) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise GraphFailed(f"the service could not be reached: {type(error).__name__}: {error}") from error


def _body_of(call: GraphCall) -> bytes:
    asked = {
        "run_id": call.run_id,
        "ingress_request_id": call.ingress_request_id,
        "graph_id": call.graph_id,
        "messages": list(call.messages),
        "input": dict(call.input),
        "model": call.model,
        "max_cost": None if call.max_cost is None else written_amount(Amount(call.max_cost)),
        "caller": {"user": call.caller.user, "account": call.caller.account, "key": call.caller.virtual_key_id},
        "attempt": call.attempt,
        "continues": call.continues,
        "reply": None if call.reply is None else call.reply.value,
    }
    return json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()


async def _read(response: httpx2.Response) -> bytes:
    read = bytearray()
    async for piece in response.aiter_bytes():
        read += piece
        if len(read) > LARGEST_ANSWER_BYTES:
            why = f"the service answered more than {LARGEST_ANSWER_BYTES} bytes"
            raise GraphFailed(why, error_code=ErrorCode.RESULT)
    return bytes(read)


def _object(read: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(read)
    except (ValueError, RecursionError):
        raise GraphFailed(f"the service answered no JSON: {_shown(read)}", error_code=ErrorCode.RESULT) from None
    if not isinstance(answer, dict):
        raise GraphFailed(f"the service answered no object: {_shown(read)}", error_code=ErrorCode.RESULT)
    return answer


def _list(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = answer.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise GraphFailed(f"{name!r} in the service's answer is no list of objects", error_code=ErrorCode.RESULT)
    return found


def usage_of(told: dict[str, Any]) -> GraphEvent:
    counts: dict[str, Any] = {name: told.get(name) for name in ("input_tokens", "output_tokens")}
    if not isinstance(told.get("unit"), str) or not all(each is None or type(each) is int for each in counts.values()):
        raise GraphFailed("a usage in the service's answer has no unit or no figures", error_code=ErrorCode.RESULT)
    call = ModelCall(unit=told["unit"], model=told.get("model"), **counts)
    kind = EventKind.USAGE if call.is_metered else EventKind.UNMETERED
    return GraphEvent(kind, {"unit": call.unit, "model": call.model, **counts}, call)


def _event(told: dict[str, Any]) -> GraphEvent:
    kind, data = told.get("kind"), told.get("data")
    known = (EventKind.TOKEN, EventKind.UPDATE, EventKind.CUSTOM, EventKind.INTERRUPT, EventKind.LOG)
    if kind not in known or not isinstance(data, dict):
        raise GraphFailed("an event in the service's answer has no kind or no data", error_code=ErrorCode.RESULT)
    return GraphEvent(EventKind(kind), data)


def _shown(read: bytes) -> str:
    return repr(read[:200].decode("utf-8", "replace"))
