"""A real server on this machine that receives webhooks, and does with each what its test tells it to."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Manner = Callable[[asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def webhook_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def told(self) -> Any:
        return json.loads(self.body)


def answers(status: int, text: str = "", **headers: str) -> Manner:
    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(text.encode())}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", text]).encode())
        await writer.drain()

    return answer


async def resets(writer: asyncio.StreamWriter) -> None:
    """Without a word."""
    writer.transport.abort()


async def answers_then_resets(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()


async def never_answers(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drips(writer: asyncio.StreamWriter) -> None:
    """A byte at a time, each before anyone loses patience with it, and no end."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.02)


async def floods(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 500 Oh\r\nContent-Length: 100000000\r\n\r\n")
    with suppress(ConnectionError):
        while True:
            writer.write(b"\x00x" * 32_768)
            await writer.drain()


def says(what: bytes) -> Manner:
    """Just that, and hangs up."""

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(what)
        with suppress(ConnectionError):
            await writer.drain()

    return say


def endlessly(first: bytes, then: bytes, *, pause_s: float = 0.0) -> Manner:
    async def go_on(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        with suppress(ConnectionError):
            while True:
                writer.write(then)
                await writer.drain()
                await asyncio.sleep(pause_s)

    return go_on


@dataclass
class Receiver:
    """The first manners are used once each, the last one from then on."""

    manners: list[Manner] = field(default_factory=lambda: [answers(200)])
    received: list[Received] = field(default_factory=list)
    port: int = 0
    has_received: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [each.webhook_id for each in self.received]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.received.append(Received(first.split()[1], headers, body))
            self.has_received.set()
            manner = self.manners.pop(0) if len(self.manners) > 1 else self.manners[0]
            await manner(writer)
        writer.close()


@asynccontextmanager
async def receiving(*manners: Manner, trust: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(manners=list(manners) or [answers(200)])
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        task.add_done_callback(serving.discard)
        await receiver._serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=trust)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
