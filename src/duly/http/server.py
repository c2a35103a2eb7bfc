"""A server of the API in this process: begins and ends when its caller says, and leaves signals to it."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi import FastAPI

from duly.domain.errors import InvalidInput, Unavailable
from duly.http.patience import PatientProtocol

GRACE_S = 1


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the caller's: it may have more to stop than a server."""
        yield


async def serve(
    api: FastAPI, *, host: str, port: int, stop: asyncio.Event, on_ready: Callable[[str], None] | None = None
) -> None:
    """Serves until `stop` is set, then ends streams at once and whatever else within a second.

    `on_ready` is told the address once it answers; port 0 takes one that is free.
    """
    listening = _bound(host, port)
    server = _Server(_config(api))
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await _begun(server, serving)
        if on_ready is not None and not serving.done():
            on_ready(_address(listening))
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        api.state.closing.begin()
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await asyncio.shield(serving)
        listening.close()


def _config(api: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        api,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        proxy_headers=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )


async def _begun(server: _Server, serving: asyncio.Future[None]) -> None:
    while not server.started and not serving.done():
        await asyncio.wait({serving}, timeout=0.01)


def _bound(host: str, port: int) -> socket.socket:
    """Bound here: a port that is taken is then an error like any other, not the end of the process."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as unknown:
        raise InvalidInput("host", f"{host!r} is no address of this machine: {unknown.strerror}") from unknown
    family, kind, protocol, _, address = found[0]
    # With its protocol: the event loop sends at once only on sockets that are said to be TCP. Elsewhere the second half
    # of an answer waits until the first is acknowledged, which takes 40 ms.
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as taken:
        listening.close()
        why = f"cannot listen on {host} port {port}: {taken.strerror}"
        raise Unavailable(f"{why}; choose another port, 0 for any that is free") from taken
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
