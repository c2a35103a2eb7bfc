"""A loopback proxy before a Postgres server's socket that cuts or holds connections where a test says so."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self
from urllib.parse import parse_qs, urlsplit

Where = Literal["before", "after"]
"""Whether the server gets to see the marked message; either way the client never sees the answer."""


class TcpProxy:
    def __init__(self, server_url: str) -> None:
        parts = urlsplit(server_url)
        self._socket = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._database = parts.path
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._pipes: set[asyncio.Task[None]] = set()
        self._plan: Callable[[bytes], Where | None] = lambda _message: None
        self._held: asyncio.Event | None = None
        self.holding = asyncio.Event()
        self.cuts = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        if self._pipes:
            await asyncio.wait(self._pipes)

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return f"postgresql://postgres@127.0.0.1:{port}{self._database}?sslmode=disable"

    def cut_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def cut_once(self, where: Where, marker: bytes) -> None:
        """Cuts the connection that next sends `marker`."""

        def plan(message: bytes) -> Where | None:
            if marker not in message:
                return None
            self.plan(lambda _message: None)
            return where

        self.plan(plan)

    def plan(self, plan: Callable[[bytes], Where | None]) -> None:
        self._plan = plan

    def hold_answers(self) -> None:
        """From here on clients hear nothing; `holding` says when there was something to hear."""
        self._held = asyncio.Event()

    def answer_again(self) -> None:
        assert self._held is not None
        self._held.set()
        self._held = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server: asyncio.StreamWriter
        from_server, to_server = await asyncio.open_unix_connection(self._socket)
        self._writers |= {writer, to_server}
        doomed = asyncio.Event()
        tasks = {
            asyncio.create_task(self._requests(reader, to_server, writer, doomed)),
            asyncio.create_task(self._answers(from_server, writer, doomed)),
        }
        self._pipes |= tasks
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.wait(tasks)
        self._pipes -= tasks
        for end in (writer, to_server):
            end.transport.abort()
            self._writers.discard(end)

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        to_client: asyncio.StreamWriter,
        doomed: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while message := await reader.read(65_536):
                where = self._plan(message)
                if where is not None:
                    self.cuts += 1
                    doomed.set()
                if where == "before":
                    return
                to_server.write(message)
                await to_server.drain()

    async def _answers(
        self, from_server: asyncio.StreamReader, to_client: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while answer := await from_server.read(65_536):
                if doomed.is_set():
                    return
                if self._held is not None:
                    self.holding.set()
                    await self._held.wait()
                to_client.write(answer)
                await to_client.drain()
