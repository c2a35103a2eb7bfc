"""Routes about Duly itself: who asks, whether it is well, what it counts, how to call it."""

import re

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from duly.domain.tokens import Role
from duly.http.answers import json_answer
from duly.http.docs_page import SECURITY_HEADERS, page_of
from duly.http.door import Door, Visiting, for_role
from duly.http.examples import ADDRESS
from duly.http.problems import Refusal
from duly.version import __version__
from duly.wire.moments import moment_or_none
from duly.wire.system import Alive, Index, Me, Ready, me_shape

router = APIRouter(tags=["system"], route_class=Door)
_NOBODY = for_role(None)
_METRICS = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "In the format of Prometheus."}
NOT_READY_RETRY_S = 5
_ADDRESS = re.compile(r"[A-Za-z0-9.-]{1,100}(:[0-9]{1,5})?", re.ASCII)
_NOUNS = (
    "schedules",
    "runs",
    "jobs",
    "templates",
    "groups",
    "workflows",
    "reviews",
    "pools",
    "accounts",
    "grants",
    "budgets",
    "webhooks",
    "deliveries",
    "tokens",
    "me",
)
_LINKS = {
    "docs": "/docs",
    "openapi": "/openapi.json",
    **{noun: f"/api/v1/{noun}" for noun in _NOUNS},
    "health": "/healthz",
    "readiness": "/readyz",
    "metrics": "/metrics",
}


@router.get("/api/v1/me", response_model=Me, summary="Who am I?", response_description="The caller's owner and role.")
async def get_me(visit: Visiting) -> Response:
    return json_answer(me_shape(visit.caller))


@router.get(
    "/healthz",
    response_model=Alive,
    openapi_extra=_NOBODY,
    summary="Does the process answer?",
    response_description="The process answers.",
)
async def get_health() -> Response:
    return json_answer(Alive())


@router.get(
    "/readyz",
    response_model=Ready,
    openapi_extra=_NOBODY,
    summary="Is time kept?",
    response_description="The store answers, and time is kept.",
)
async def get_readiness(visit: Visiting) -> Response:
    """Ready if the store answers, a timekeeper is alive, and no slot is overdue."""
    readiness = await visit.queue.health.readiness()
    if not readiness.is_ready:
        # Beyond this machine anybody may ask, and nobody there is told what schedules are called.
        is_local: bool = visit.request.app.state.access.is_local
        problems = readiness.problems_with_names if is_local else readiness.problems
        raise Refusal(
            503,
            "; ".join(problems),
            code="not_ready",
            errors=tuple(("", problem) for problem in problems),
            headers={"Retry-After": str(NOT_READY_RETRY_S)},
        )
    return json_answer(
        Ready(
            alive_at=moment_or_none(readiness.alive_at),
            next_fire_at=moment_or_none(readiness.next_fire_at),
        )
    )


@router.get("/metrics", response_class=Response, responses={200: _METRICS}, summary="Metrics")
async def get_metrics(request: Request) -> Response:
    text: bytes = await request.app.state.metrics()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/", include_in_schema=False)
async def get_index(request: Request) -> Response:
    """People are led to the page, programs are told where things are."""
    varies = {"Vary": "Accept"}
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/docs", 303, varies)
    return json_answer(Index(version=__version__, links=_LINKS), headers=varies)


@router.get("/openapi.json", include_in_schema=False, openapi_extra=for_role(Role.VIEWER))
async def get_openapi(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


@router.get("/docs", include_in_schema=False, openapi_extra=for_role(Role.VIEWER))
async def get_docs(request: Request) -> Response:
    host = request.headers.get("host", "")
    address = host if _ADDRESS.fullmatch(host) else ADDRESS
    return HTMLResponse(page_of(request.app.openapi(), address), headers=SECURITY_HEADERS)
