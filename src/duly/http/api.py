"""The HTTP API as one application, made of use cases and an access rule."""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import Response

from duly.http import (
    accounts,
    budgets,
    cron,
    directs,
    grants,
    groups,
    inbound,
    job_changes,
    job_order,
    job_retries,
    jobs,
    legacy_jobs,
    pools,
    reviews,
    runs,
    schedule_runs,
    schedules,
    system,
    templates,
    tokens,
    webhooks,
    why,
    workflows,
)
from duly.http.access import Access
from duly.http.closing import Closing
from duly.http.description import DESCRIPTION, described
from duly.http.gate import Gate
from duly.http.problems import problem_from
from duly.http.streams import MOST_STREAMS, Streams
from duly.http.use_cases import UseCases
from duly.version import __version__

Metrics = Callable[[], Awaitable[bytes]]
# Where one path fits two routes, the fixed word comes first: /schedules/preview before /schedules/{id}.
_ROUTERS = (
    schedule_runs.router,
    schedules.router,
    runs.router,
    job_retries.router,
    job_retries.by_run,
    job_order.router,
    job_order.of_pools,
    workflows.router,
    cron.router,
    jobs.router,
    job_changes.router,
    legacy_jobs.router,
    templates.router,
    groups.router,
    directs.router,
    pools.router,
    reviews.router,
    inbound.router,
    accounts.router,
    grants.router,
    budgets.router,
    tokens.router,
    webhooks.router,
    webhooks.deliveries_router,
    why.router,
    system.router,
)


_NO_SECRETS = inbound.Inbound()


async def no_metrics() -> bytes:
    return b""


def create_api(
    queue: UseCases,
    *,
    access: Access,
    metrics: Metrics = no_metrics,
    secrets: inbound.Inbound = _NO_SECRETS,
    streams_per_token: int = MOST_STREAMS,
) -> FastAPI:
    """`metrics` answers what is counted, in the text format of Prometheus; `secrets` are those of inbound webhooks."""
    api = FastAPI(
        title="Duly",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    api.state.queue = queue
    api.state.access = access
    api.state.metrics = metrics
    api.state.inbound = secrets
    api.state.closing = Closing()
    api.state.streams = Streams(streams_per_token)
    api.state.direct_calls = None
    for router in _ROUTERS:
        api.include_router(router)
    api.add_middleware(Gate, queue=queue, access=access)
    for kind in (StarletteHTTPException, RequestValidationError):
        api.add_exception_handler(kind, _answer)
    describe = api.openapi
    api.openapi = lambda: described(api, describe)  # type: ignore[method-assign] # FastAPI's own way to extend it
    return api


async def _answer(request: Request, error: Exception) -> Response:
    """What no route took: an unknown path, a method that a path does not have."""
    response = problem_from(error, request.state.request_id)
    if response.status_code == 405:
        response.headers["Allow"] = ", ".join(sorted(_methods_of(request.url.path)))
    return response


def _methods_of(path: str) -> set[str]:
    """Of all routes at a path; the framework names those of the first one it meets."""
    routes = [route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    there = next((route.path_format for route in routes if route.path_regex.match(path)), None)
    return {method for route in routes if route.path_format == there for method in route.methods or ()}
