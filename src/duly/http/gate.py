"""What every request passes, whatever its path: an id, the door keeper, a bound on its body, and a last catch."""

import logging
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duly.domain.errors import DulyError
from duly.http.access import Access
from duly.http.problems import Refusal, answer, problem_from
from duly.http.use_cases import UseCases

LARGEST_BODY = 1_048_576

_log = logging.getLogger("duly.http")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_TOO_LARGE = f"a body of more than {LARGEST_BODY} bytes is not read"


class Gate:
    def __init__(self, app: ASGIApp, *, queue: UseCases, access: Access) -> None:
        self._app = app
        self._queue = queue
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = self._request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        outward = _Outward(send, request_id)
        try:
            await self._admit(scope, headers)
            await self._app(scope, _bounded(receive, headers), outward)
        except (DulyError, Refusal) as refused:
            await outward.say(problem_from(refused, request_id), scope, receive)
        except ClientDisconnect:
            _log.debug("request %s was left by its caller", request_id)
        except Exception:  # noqa: BLE001 - whatever it is, its caller gets an answer and the log the reason
            _log.exception("request %s failed", request_id)
            detail = "the server failed; its log says why, under the request's id"
            await outward.say(answer(500, "internal_error", detail, request_id), scope, receive)

    def _request_id(self, headers: Headers) -> str:
        given = headers.get("x-request-id", "")
        return given if _REQUEST_ID.fullmatch(given) else self._queue.dice.new_id("req")

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        self._access.require_local_origin(scope["method"], headers)
        scope["state"]["caller"] = await self._access.caller(self._queue, scope["path"], headers)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) <= 18) or int(length) > LARGEST_BODY:
            raise Refusal(413, _TOO_LARGE, headers={"Connection": "close"})
        if headers.get("content-encoding", "identity") != "identity":
            raise Refusal(415, "compressed bodies are not read")


class _Outward:
    """Adds what every answer carries, and knows whether one has begun."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self._has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_begun = True
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    async def say(self, response: ASGIApp, scope: Scope, receive: Receive) -> None:
        if not self._has_begun:
            await response(scope, receive, self)


def _bounded(receive: Receive, headers: Headers) -> Receive:
    """Counts what comes in pieces; what has a length that fits needs no counting."""
    if "transfer-encoding" not in headers:
        return receive
    received = 0

    async def receive_bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > LARGEST_BODY:
            raise Refusal(413, _TOO_LARGE, headers={"Connection": "close"})
        return message

    return receive_bounded
