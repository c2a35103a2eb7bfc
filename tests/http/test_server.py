"""The server as a program meets it: begun on a free port, stopped when told, with no say over signals."""

import asyncio
import signal
import socket
from contextlib import suppress

import httpx2
import pytest

from duly.bootstrap import Queue, serve
from duly.domain.cadence import every
from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.schedules import Target
from duly.http.access import Access
from duly.http.api import create_api
from duly.system.dice import SystemDice
from tests.contracts.clocks import SettableClock
from tests.contracts.world import ClockedStorage
from tests.http.site import DAILY, Site, is_problem


async def test_it_answers_once_it_is_ready_and_no_more_when_stopped(site: Site) -> None:
    async with site.served() as served, httpx2.AsyncClient(base_url=served.url) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.post("/api/v1/schedules", json=DAILY)).status_code == 201
        served.stop.set()
        await served.serving
        with pytest.raises(httpx2.TransportError):
            await client.get("/healthz")


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("0.0.0.0", 401)])  # noqa: S104 - what is shown
async def test_only_on_a_loopback_address_nobody_needs_a_token(quick_site: Site, host: str, status: int) -> None:
    stop = asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(quick_site.queue, host=host, port=0, stop=stop, on_ready=address.set_result))
    port = (await address).rpartition(":")[2]

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        assert (await client.get("/api/v1/me")).status_code == status
        assert (await client.get("/healthz")).status_code == 200
    stop.set()
    await serving


async def test_a_request_that_hangs_does_not_hold_the_stop_up(quick_site: Site) -> None:
    entered = asyncio.Event()

    async def hang() -> bytes:
        entered.set()
        await asyncio.Event().wait()
        return b""

    quick_site.api.state.metrics = hang
    async with quick_site.served() as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        hanging = asyncio.create_task(client.get("/metrics"))
        await entered.wait()
        served.stop.set()
        await served.serving
        hanging.cancel()
        with suppress(asyncio.CancelledError, httpx2.TransportError):
            await hanging


async def test_signals_stay_the_callers(quick_site: Site) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    async with quick_site.served():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_a_port_that_is_taken_is_an_error_to_handle(quick_site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Unavailable, match="cannot listen"):
            await serve(quick_site.queue, host="127.0.0.1", port=taken.getsockname()[1], stop=asyncio.Event())
    with pytest.raises(InvalidInput):
        await serve(quick_site.queue, host="no.such.host.invalid", port=0, stop=asyncio.Event())


async def test_readiness_is_about_time_being_kept(site: Site) -> None:
    clock = SettableClock()
    queue = Queue.on(ClockedStorage(site.queue.storage, clock), SystemDice(), site.queue.settings)
    client = site.client(create_api(queue, access=Access(is_local=False)))
    assert (await client.get("/readyz")).status_code == 200
    await queue.schedules.create(owner="ann", cadence=every("1h"), target=Target(kind="greet"))

    clock.advance(60)
    problem = is_problem(unready := await client.get("/readyz"), 503, "not_ready")
    assert unready.headers["retry-after"]
    assert "no timekeeper" in problem["errors"][0]["detail"]

    await queue.timekeeping.keep_alive()
    ready = (await client.get("/readyz")).json()
    assert ready["status"] == "ready"
    assert ready["next_fire_at"] is not None


async def test_what_is_overdue_is_named_on_this_machine_only(site: Site) -> None:
    clock = SettableClock()
    queue = Queue.on(ClockedStorage(site.queue.storage, clock), SystemDice(), site.queue.settings)
    await queue.schedules.create(owner="ann", schedule_id="hers", cadence=every("1s"), target=Target(kind="greet"))
    clock.advance(60)

    local = site.client(create_api(queue, access=Access(is_local=True)), "http://127.0.0.1:8470")
    told = is_problem(await local.get("/readyz"), 503, "not_ready")["detail"]
    assert told.endswith("1 schedule is overdue by more than 5 s: hers")
    elsewhere = site.client(create_api(queue, access=Access(is_local=False)))
    assert "hers" not in (await elsewhere.get("/readyz")).text


async def test_metrics_are_what_they_are_given(quick_site: Site) -> None:
    answer = await quick_site.local.get("/metrics")

    assert (answer.text, answer.headers["content-type"][:10]) == ("duly_up 1\n", "text/plain")


@pytest.mark.parametrize("piece", [b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", b"\x00\x01\x02\r\n\r\n"])
async def test_what_is_not_http_harms_nobody(quick_site: Site, piece: bytes) -> None:
    async with quick_site.served() as served, httpx2.AsyncClient(base_url=served.url) as client:
        port = int(served.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(piece)
        assert (await reader.read()).startswith(b"HTTP/1.1 4")
        writer.close()
        await writer.wait_closed()
        assert (await client.get("/healthz")).status_code == 200
