"""The HTTP API and the execution service, served."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from duly.application.executions import Executions
from duly.bootstrap.graphs import internal_token
from duly.bootstrap.queue import Queue
from duly.domain.instants import Micros
from duly.graphs.registry import Registry
from duly.settings import Settings
from duly.worker.direct_calls import DirectCalls
from duly.worker.handlers import Handler

if TYPE_CHECKING:
    from duly.http.services import ServicesToo


async def serve(
    queue: Queue,
    *,
    host: str,
    port: int,
    stop: asyncio.Event,
    on_ready: Callable[[str], None] | None = None,
    metrics: Callable[[], Awaitable[bytes]] | None = None,
    graphs: Registry | None = None,
    handlers: Callable[[], Mapping[str, Handler]] | None = None,
) -> None:
    """The HTTP API until `stop` is set. On a loopback address nobody needs a token; on any other everybody does.

    With `graphs` it is their execution service, too, for callers that show the internal API's token; with `handlers`
    it takes direct calls, which may go on for the grace once it is told to stop.
    The API is imported where it is served: whoever only uses the queue does not wait for a web framework.
    """
    from duly.http.api import create_api
    from duly.http.executions import add_internal_api
    from duly.http.inbound import Inbound
    from duly.http.server import serve as serve_api
    from duly.http.services import ServiceAccess

    settings = queue.settings
    api = create_api(
        queue,
        access=_access(settings, host),
        metrics=metrics or queue.metrics,
        secrets=Inbound(standard=settings.inbound_secret, plane=settings.plane_secret),
        streams_per_token=settings.streams_per_token,
    )
    executions = None if graphs is None else queue.executions(graphs)
    if executions is not None:
        access = ServiceAccess(secret=internal_token(settings), public_key=settings.internal_api_public_key)
        add_internal_api(api, queue, executions, access)
    if handlers is not None:
        api.state.direct_calls = queue.direct_calls(handlers=handlers, name=f"duly serve {os.getpid()}")
    async with _beside(queue, api.state.direct_calls, executions, stop) as is_over:
        await serve_api(api, host=host, port=port, stop=is_over, on_ready=on_ready)


@asynccontextmanager
async def _beside(
    queue: Queue, calls: DirectCalls | None, executions: Executions | None, stop: asyncio.Event
) -> AsyncIterator[asyncio.Event]:
    """What goes on while the server answers, and ends with it; the server ends once nobody waits for it any more."""
    is_over = asyncio.Event()
    forgetting = asyncio.create_task(queue.requests.keep_forgetting())
    closing = asyncio.create_task(_close_calls(calls, stop, is_over, grace=queue.settings.grace))
    try:
        yield is_over
    finally:
        stop.set()
        await asyncio.gather(closing, return_exceptions=True)
        forgetting.cancel()
        await asyncio.gather(forgetting, return_exceptions=True)
        if executions is not None:
            await executions.close()


def _access(settings: Settings, host: str) -> "ServicesToo":
    from duly.http.access import Access
    from duly.http.cron import PREFIXES
    from duly.http.services import ServiceAccess, ServicesToo

    public = Access.at(host, asks_for_tokens=settings.loopback == "tokens")
    token = settings.internal_api_token
    services = None if token is None else ServiceAccess(secret=token)
    return ServicesToo(is_local=public.is_local, services=services, prefixes=PREFIXES)


async def _close_calls(
    calls: DirectCalls | None, stop: asyncio.Event, is_over: asyncio.Event, *, grace: Micros
) -> None:
    """Callers are answered before the server goes."""
    await stop.wait()
    try:
        if calls is not None:
            await calls.close(grace=grace)
    finally:
        is_over.set()
