"""The HTTP API and the execution service, served."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping

from duly.bootstrap.queue import Queue, internal_token
from duly.domain.instants import Micros
from duly.graphs.registry import Registry
from duly.worker.direct_calls import DirectCalls
from duly.worker.handlers import Handler


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
    from duly.http.access import Access  # noqa: PLC0415
    from duly.http.api import create_api  # noqa: PLC0415
    from duly.http.cron import PREFIXES  # noqa: PLC0415
    from duly.http.executions import add_internal_api  # noqa: PLC0415
    from duly.http.inbound import Inbound  # noqa: PLC0415
    from duly.http.server import serve as serve_api  # noqa: PLC0415
    from duly.http.services import ServiceAccess, ServicesToo  # noqa: PLC0415

    public = Access.at(host, asks_for_tokens=queue.settings.loopback == "tokens")
    token = queue.settings.internal_api_token
    services = None if token is None else ServiceAccess(secret=token)
    api = create_api(
        queue,
        access=ServicesToo(is_local=public.is_local, services=services, prefixes=PREFIXES),
        metrics=metrics or queue.metrics,
        secrets=Inbound(standard=queue.settings.inbound_secret, plane=queue.settings.plane_secret),
        streams_per_token=queue.settings.streams_per_token,
    )
    executions = None if graphs is None else queue.executions(graphs)
    if executions is not None:
        secret, public_key = internal_token(queue.settings), queue.settings.internal_api_public_key
        add_internal_api(api, queue, executions, ServiceAccess(secret=secret, public_key=public_key))
    if handlers is not None:
        api.state.direct_calls = queue.direct_calls(handlers=handlers, name=f"duly serve {os.getpid()}")
    is_over = asyncio.Event()
    forgetting = asyncio.create_task(queue.requests.keep_forgetting())
    closing = asyncio.create_task(_close_calls(api.state.direct_calls, stop, is_over, grace=queue.settings.grace))
    try:
        await serve_api(api, host=host, port=port, stop=is_over, on_ready=on_ready)
    finally:
        stop.set()
        await asyncio.gather(closing, return_exceptions=True)
        forgetting.cancel()
        await asyncio.gather(forgetting, return_exceptions=True)
        if executions is not None:
            await executions.close()


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
