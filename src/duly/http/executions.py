"""The internal API: one route that executes a graph once for each key, for services that may call it."""

import logging
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from duly.application.executions import Executions
from duly.domain.amounts import written_amount
from duly.domain.errors import DulyError
from duly.domain.executions import ExecutionStatus
from duly.domain.grants import UnknownGrant
from duly.domain.requests import StillRunning
from duly.domain.traces import Trace, trace_of
from duly.http.answers import json_answer
from duly.http.gate import Gate
from duly.http.problems import Refusal, answer, problem_from
from duly.http.services import ServiceAccess
from duly.http.use_cases import UseCases
from duly.wire import executions as wire
from duly.wire.strict_json import MalformedJson, value_from

PREFIX = "/api/internal/"
COST = "Duly-Cost"
"""What the execution has spent so far, in its account's currency."""

# A graph may end any moment; only that of a dead service takes as long as its lease.
_LONGEST_RETRY_S = 5

_log = logging.getLogger("duly.http")
router = APIRouter(prefix="/api/internal/graphs")


@router.post("/{graph_id}/runs", response_model=wire.Outcome)
async def run_graph(
    request: Request, graph_id: str, idempotency_key: Annotated[str | None, Header()] = None
) -> Response:
    if idempotency_key is None:
        raise Refusal(400, "there is no Idempotency-Key", code="missing_idempotency_key")
    executions: Executions = request.app.state.executions
    asked = wire.request_from(idempotency_key, graph_id, await _body_of(request))
    execution = await executions.execute(asked, ingress_request_id=request.state.request_id, trace=_trace(request))
    _log.info(
        "%s executed %s as %s: %s", request.state.caller.owner, graph_id, execution.run_id, execution.error_code or "ok"
    )
    headers = {COST: written_amount(execution.spent)}
    status = 202 if execution.status is ExecutionStatus.WAITING else 200
    return json_answer(wire.outcome_shape(execution), status, headers)


@router.delete("/{graph_id}/runs", response_model=wire.Outcome)
async def cancel_graph(
    request: Request,
    graph_id: str,
    execution_grant_id: str | None = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Whoever asked for it no longer wants it: what runs is stopped, what is over stays as it is.

    With the grant of the call it also holds for a call that is still on its way.
    """
    if idempotency_key is None:
        raise Refusal(400, "there is no Idempotency-Key", code="missing_idempotency_key")
    executions: Executions = request.app.state.executions
    caller = request.state.caller.owner
    execution = await executions.cancel(
        idempotency_key, f"cancelled by {caller}", graph_id=graph_id, grant_id=execution_grant_id
    )
    _log.info("%s cancelled %s as %s", caller, graph_id, execution.run_id)
    return json_answer(wire.outcome_shape(execution))


def internal_api(queue: UseCases, executions: Executions, access: ServiceAccess) -> FastAPI:
    """For a port of its own, or beside the public API of the same process."""
    api = FastAPI(title="Duly, internal", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    api.state.executions = executions
    api.include_router(router)
    api.add_middleware(Gate, queue=queue, access=access)
    for kind in (DulyError, StarletteHTTPException, RequestValidationError):
        api.add_exception_handler(kind, _answer)
    return api


def add_internal_api(public: FastAPI, queue: UseCases, executions: Executions, access: ServiceAccess) -> None:
    public.add_middleware(Beside, internal=internal_api(queue, executions, access))


class Beside:
    """Two applications on one port: what begins with the internal prefix goes to the internal one."""

    def __init__(self, app: ASGIApp, internal: ASGIApp) -> None:
        self._public = app
        self._internal = internal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_internal = scope["type"] == "http" and scope["path"].startswith(PREFIX)
        await (self._internal if is_internal else self._public)(scope, receive, send)


def _trace(request: Request) -> Trace | None:
    return trace_of(request.headers.get("traceparent"))


async def _body_of(request: Request) -> wire.NewExecution:
    try:
        value: Any = value_from(await request.body())
    except MalformedJson as malformed:
        raise Refusal(400, f"the body {malformed}", code="malformed_json") from None
    try:
        return wire.NewExecution.model_validate(value)
    except ValidationError as wrong:
        found = [{**each, "loc": ("body", *each["loc"])} for each in wrong.errors()]
        raise RequestValidationError(found) from None


async def _answer(request: Request, error: Exception) -> Response:
    request_id = request.state.request_id
    if isinstance(error, UnknownGrant):
        return answer(403, error.code, str(error), request_id)
    response = problem_from(error, request_id)
    if isinstance(error, StillRunning):
        response.headers["Retry-After"] = str(min(error.retry_after_s, _LONGEST_RETRY_S))
    return response
