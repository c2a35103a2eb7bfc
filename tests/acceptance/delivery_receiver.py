"""A server that receives webhooks, and notes each on the disk before it answers: its journal decides what arrived."""

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from duly.domain.webhooks.signing import SignatureRefused, verify
from tests.acceptance.journal import Journal

_REFUSES, _HICCUPS, _RESETS, _DAWDLES = range(4)
# By the event's id, so that a receiver does the same with every call that tells it.
_MANNERS = (_REFUSES, *[_HICCUPS] * 3, _RESETS, *[_DAWDLES] * 5)
_KINDS = 16


class Reception(NamedTuple):
    """`pid` is the courier's, `status` what it was to be answered."""

    path: str
    webhook_id: str
    pid: int
    status: int
    at: float
    body: str


@dataclass
class NotingReceiver:
    journal: Journal
    path: Path
    secrets: dict[str, str] = field(default_factory=dict)
    port: int = 0
    complaints: list[str] = field(default_factory=list)
    _times: Counter[tuple[str, str]] = field(default_factory=Counter)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def receptions(self) -> list[Reception]:
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [
            Reception(each["path"], each["webhook"], each["by"], each["status"], each["at"], each["body"])
            for each in lines
        ]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # its courier was killed
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers["content-length"]))
            await self._answer(writer, *self._noted(first.split()[1], headers, body))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _noted(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, int]:
        """The manner and the status with which this one is answered."""
        webhook_id, (_, _, pid) = headers["webhook-id"], headers["user-agent"].rpartition("+")
        try:
            verify(headers, body, [self.secrets[path]], now_s=int(headers["webhook-timestamp"]))
        except (SignatureRefused, KeyError) as error:
            self.complaints.append(f"{webhook_id} at {path}: {error!r}")
        self._times[path, webhook_id] += 1
        kind = zlib.crc32(webhook_id.encode()) % _KINDS
        manner = _MANNERS[kind] if kind < len(_MANNERS) else -1
        is_first = self._times[path, webhook_id] == 1
        status = 400 if manner == _REFUSES else 500 if manner == _HICCUPS and is_first else 200
        self.journal.note("received", path=path, webhook=webhook_id, by=int(pid), status=status, body=body.decode())
        return manner, status

    async def _answer(self, writer: asyncio.StreamWriter, manner: int, status: int) -> None:
        if manner == _DAWDLES:
            await asyncio.sleep(0.1)
        length = 1_000 if manner == _RESETS else 0
        writer.write(f"HTTP/1.1 {status} Whatever\r\nContent-Length: {length}\r\n\r\n".encode())
        await writer.drain()
        if manner == _RESETS:
            await asyncio.sleep(0.02)
            writer.transport.abort()


@asynccontextmanager
async def noting(path: Path) -> AsyncIterator[NotingReceiver]:
    receiver = NotingReceiver(Journal(path, fsync=True), path)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(task := asyncio.create_task(receiver.serve(reader, writer)))
        with suppress(asyncio.CancelledError):
            await task
        serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        receiver.journal.close()
