"""What every route passes: the caller's role, strict JSON, one execution per idempotency key, problems for errors."""

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import Response

from duly.domain.errors import DulyError, InvalidInput
from duly.domain.requests import Answer, Claimed
from duly.domain.requests import Request as KeyedRequest
from duly.domain.tokens import Caller, Role, Unauthenticated
from duly.http.problems import Refusal, problem_from
from duly.http.use_cases import UseCases
from duly.wire.pointers import NOTHING, Asked, pointer_to
from duly.wire.strict_json import MalformedJson, value_from
from duly.wire.suggestions import unknown

ROLE = "x-duly-role"
NOBODY = "nobody"
_LEAST_ROLES = {"GET": Role.VIEWER}
_MOST_NAMED = 20
_LONGEST_NAME = 40
_KEPT_HEADERS = ("etag", "location", "retry-after", "www-authenticate")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def for_role(role: Role | None) -> dict[str, Any]:
    """Marks a route that needs another role than its method tells, in the API's description, too."""
    return {ROLE: NOBODY if role is None else role.value}


@dataclass(slots=True)
class Visit:
    """One request, as routes meet it."""

    queue: UseCases
    caller: Caller
    request: Request
    claimed: Claimed | None = None
    kept_body: bytes | None = None

    @property
    def sees(self) -> str | None:
        return self.caller.sees

    async def require_welcome(self) -> None:
        """For what lasts: raises if the caller would no longer be let in."""
        request = self.request
        await request.app.state.access.caller(self.queue, request.url.path, request.headers)

    @property
    def draw(self) -> str | None:
        """What this request's ids and keys are made of, if it may be repeated."""
        return None if self.claimed is None else self.claimed.draw

    @property
    def is_repeated(self) -> bool:
        """An earlier execution of this request may have done its work, and could not say so."""
        return self.claimed is not None and self.claimed.is_repeated


async def _visit_of(request: Request) -> Visit:
    visit: Visit = request.state.visit
    return visit


Visiting = Annotated[Visit, Depends(_visit_of)]


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return value_from(await self.body())
        except MalformedJson as malformed:
            raise Refusal(400, f"the body {malformed}", code="malformed_json") from None


class Door(APIRoute):
    """Errors become answers here, inside the claim: what a key replays is the problem, too."""

    @property
    def role(self) -> Role | None:
        marked = (self.openapi_extra or {}).get(ROLE)
        if marked is not None:
            return None if marked == NOBODY else Role(marked)
        return _LEAST_ROLES.get(min(self.methods or {""}), Role.OPERATOR)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        role = self.role
        takes_body = self.body_field is not None
        shape = self.body_field.field_info.annotation if self.body_field is not None else None
        asked = frozenset(each.alias for each in self.dependant.query_params)

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except (InvalidInput, RequestValidationError) as error:
                return problem_from(error, request.state.request_id, await _asked(request, shape))
            except (DulyError, StarletteHTTPException) as error:
                return problem_from(error, request.state.request_id)

        async def enter(request: Request) -> Response:
            request = _StrictRequest(request.scope, request.receive)
            try:
                _admit(request, role)
                _require_known(request, asked)
                if takes_body:
                    await _require_json(request)
                if request.method == "POST" and "idempotency-key" in request.headers and role is not None:
                    return await _once(request, f"{request.method} {self.path_format}", answered)
            except (DulyError, Refusal) as error:
                return problem_from(error, request.state.request_id)
            return await answered(request)

        return enter


async def _asked(request: Request, shape: object) -> Asked:
    """Read again, for those who got it wrong only."""
    if shape is None:
        return NOTHING
    given = await request.json() if await request.body() else None
    return Asked(shape, given if isinstance(given, dict) else {})


def _admit(request: Request, role: Role | None) -> None:
    caller: Caller | None = request.state.caller
    if role is not None:
        if caller is None:
            raise Unauthenticated
        caller.require(role)
    request.state.visit = Visit(request.app.state.queue, caller, request)  # type: ignore[arg-type] # open routes ask for no caller


def _require_known(request: Request, known: frozenset[str]) -> None:
    """A parameter that is passed over is a wish that is not granted: `?withdrw=true` must not delete without it."""
    strange = [name for name in request.query_params if name not in known]
    if strange:
        errors = tuple(
            (pointer_to("query", name[:_LONGEST_NAME]), unknown(name, known, what="parameter"))
            for name in strange[:_MOST_NAMED]
        )
        raise Refusal(422, "; ".join(why for _, why in errors), code="invalid_input", errors=errors)


async def _require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json and await request.body():
        raise Refusal(415, "bodies are JSON: send Content-Type: application/json")


async def _once(request: Request, route: str, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    visit: Visit = request.state.visit
    keyed = KeyedRequest(
        owner=visit.caller.owner,
        # What one role was answered is nothing to replay to another.
        route=f"{visit.caller.role} {route}",
        key=request.headers["idempotency-key"],
        hash=_hash(request, await request.body()),
    )
    claimed = await visit.queue.requests.claim(keyed)
    if isinstance(claimed, Answer):
        headers = {**dict(claimed.headers), "Idempotency-Replayed": "true"}
        return Response(claimed.body, claimed.status, headers, claimed.content_type)
    visit.claimed = claimed
    try:
        response = await handle(request)
    except BaseException:
        await visit.queue.requests.abandon(keyed, claimed)
        raise
    if response.status_code >= 500:
        await visit.queue.requests.abandon(keyed, claimed)
    else:
        await visit.queue.requests.answer(keyed, claimed, _kept(response, visit.kept_body))
    return response


def _hash(request: Request, body: bytes) -> str:
    """A condition is part of what is asked: with another one, it is another request."""
    condition = request.headers.getlist("if-match")
    asked = f"{request.method} {request.url.path}?{request.url.query}\n{condition}\n".encode()
    return hashlib.sha256(asked + body).hexdigest()


def _kept(response: Response, body: bytes | None) -> Answer:
    headers = tuple((name, response.headers[name]) for name in _KEPT_HEADERS if name in response.headers)
    return Answer(
        status=response.status_code,
        content_type=response.headers.get("content-type", "application/json"),
        body=bytes(response.body) if body is None else body,
        headers=headers,
    )
