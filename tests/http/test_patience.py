"""A client that drips what it has to say is hung up on after a bounded time; one that speaks is not."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from tests.http.site import DAILY, Site

HEAD = b"POST /api/v1/schedules HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = HEAD + b"Content-Length: 1000\r\n\r\n{"
DONE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.http.patience.RECEIVE_WITHIN_S", 0.5)


@asynccontextmanager
async def _dripping(writer: asyncio.StreamWriter, drop: bytes) -> AsyncIterator[None]:
    """Never silent for long enough to be idle."""

    async def drip() -> None:
        with suppress(ConnectionError):
            while True:
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(0.05)

    dripping = asyncio.create_task(drip())
    try:
        yield
    finally:
        dripping.cancel()
        with suppress(asyncio.CancelledError):
            await dripping


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"", b""),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", b"x"),
        (b"G", b""),
        (b"", b"\r\n"),
        (BODY, b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["silent", "headers", "method", "empty lines", "body", "chunks"],
)
async def test_who_does_not_come_to_an_end_is_hung_up_on(
    quick_site: Site, caplog: pytest.LogCaptureFixture, first: bytes, drop: bytes
) -> None:
    async with quick_site.served() as served, httpx2.AsyncClient(base_url=served.url) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
        writer.write(first)
        async with _dripping(writer, drop), asyncio.timeout(30):
            answer = await _everything(reader)
        writer.close()
        assert _is(answer, 408, may_be_lost=bool(drop))
        assert (await client.get("/healthz")).status_code == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(("first", "drop"), [(BODY, b" "), (b"", b"\r\n")], ids=["body", "empty lines"])
async def test_a_second_request_has_no_more_time_than_the_first(quick_site: Site, first: bytes, drop: bytes) -> None:
    async with quick_site.served() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
        writer.write(DONE)
        assert b"200" in await reader.readuntil(b'{"status":"ok"}')
        writer.write(first)
        async with _dripping(writer, drop), asyncio.timeout(30):
            assert _is(await _everything(reader), 408, may_be_lost=True)
        writer.close()


async def test_headers_without_end_are_refused(quick_site: Site) -> None:
    async with quick_site.served() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        async with _dripping(writer, b"X-More: " + b"x" * 30_000 + b"\r\n"), asyncio.timeout(30):
            assert _is(await _everything(reader), 431, may_be_lost=True)
        writer.close()


async def test_an_answer_may_take_longer_than_the_question(quick_site: Site) -> None:
    asked = asyncio.Event()

    async def slow() -> bytes:
        asked.set()
        await asyncio.sleep(1.5)
        return b"late 1\n"

    quick_site.api.state.metrics = slow
    async with quick_site.served() as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        assert (await client.get("/metrics")).text == "late 1\n"
        assert (await client.post("/api/v1/schedules", json=DAILY)).status_code == 201


def _is(answer: bytes, status: int, *, may_be_lost: bool) -> bool:
    """Who goes on talking may only learn that the line was cut: what was said before is then thrown away."""
    return answer.startswith(f"HTTP/1.1 {status} ".encode()) or (may_be_lost and not answer)


async def _everything(reader: asyncio.StreamReader) -> bytes:
    """What came before the line was cut, whoever cut it."""
    came = b""
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            came += piece
    return came
