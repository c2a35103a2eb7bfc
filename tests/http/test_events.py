"""A run followed over a real socket: every line once, however often the client comes back."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from duly.application.logs import Logs
from duly.domain.ids import JobId
from duly.domain.instants import Instant, Micros
from duly.domain.logs import LogLevel, LogLine, Progress
from duly.domain.tokens import Role
from duly.http.events import LINES_AT_ONCE, Place
from duly.http.server import _bound
from tests.http.site import Served, Site, is_problem, waiting_review


@dataclass
class Event:
    name: str
    id: str | None
    data: dict[str, Any]


@asynccontextmanager
async def _stream(
    served: Served, run_id: str, *, last: str | None = None, **headers: str
) -> AsyncIterator[AsyncIterator[Event]]:
    headers |= {} if last is None else {"Last-Event-ID": last}
    async with (
        httpx2.AsyncClient(timeout=30) as client,
        client.stream("GET", f"{served.url}/api/v1/runs/{run_id}/events", headers=headers) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer)


async def _events(answer: httpx2.Response) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], fields.get("id"), json.loads(fields["data"]))
            fields = {}


async def _triggered(site: Site, **fields: Any) -> dict[str, Any]:
    await site.schedule(id="a", **fields)
    return dict((await site.local.post("/api/v1/schedules/a/trigger")).json())


async def _say(site: Site, job_id: str, *numbers: int) -> None:
    now = site.queue.storage.clock.now()
    await site.queue.logs.keep([LogLine(JobId(job_id), seq, now, LogLevel.INFO, f"line {seq}") for seq in numbers])


async def test_a_run_is_followed_to_its_end(site: Site) -> None:
    run = await _triggered(site)
    may_end = asyncio.Event()

    async def greet(job: Any) -> None:
        now = site.queue.storage.clock.now()
        await _say(site, job.id, 1, 2)
        await site.queue.logs.keep([], [Progress(job.id, now, 500, "half")])
        await may_end.wait()

    seen: list[Event] = []
    async with site.served() as served, site.working(greet=greet), _stream(served, run["id"]) as events:
        async for event in events:
            seen.append(event)
            if event.name == "progress":
                may_end.set()

    assert [event.id for event in seen if event.name == "log"] == ["1.1", "1.2"]
    (progress,) = [event.data for event in seen if event.name == "progress"]
    assert (progress["fraction"], progress["note"], progress["attempt"]) == (0.5, "half", 1)
    statuses = [event.data["status"] for event in seen if event.name == "status"]
    assert statuses[-1] == "success"
    assert set(statuses) <= {"pending", "running", "success"}
    assert (seen[-1].name, seen[-1].data) == ("end", {"status": "success"})


@pytest.mark.req("GRAPH-29")
async def test_what_a_run_asks_people_and_what_they_decide_is_told(site: Site) -> None:
    run, review = await _triggered(site), await waiting_review(site.queue, owner="local")
    await site.queue.runs.note_execution(run["id"], execution=review.run_id, trace_id=None)

    told: list[str] = []
    async with site.served() as served, _stream(served, run["id"]) as events:
        async for event in events:
            if event.name == "review":
                told.append(event.data["state"])
                url, decision = f"/api/v1/reviews/{review.id}/decision", {"decision": "approve"}
                await site.local.post(url, json=decision)
            if told[-1:] == ["approved"]:
                break

    assert told == ["open", "approved"]


async def test_who_comes_back_misses_no_line_and_sees_none_twice(site: Site) -> None:
    run = await _triggered(site)
    many = LINES_AT_ONCE * 2 + 7
    seen: list[int] = []
    last: str | None = None

    async with site.served() as served:
        await _say(site, run["job_id"], *range(1, 51))
        # Leaves in the middle, again and again, while more is said.
        for leave_after in (1, 7, 49, 120):
            async with _stream(served, run["id"], last=last) as events:
                async for event in events:
                    if event.name == "log":
                        seen.append(event.data["seq"])
                        last = event.id
                    if event.name == "log" and len(seen) >= leave_after:
                        break
            await _say(site, run["job_id"], *range(51, many + 1))
        await site.local.post(f"/api/v1/runs/{run['id']}/cancel")
        async with _stream(served, run["id"], last=last) as events:
            rest = [event async for event in events]

    seen += [event.data["seq"] for event in rest if event.name == "log"]
    assert seen == list(range(1, many + 1))
    assert rest[-1].data == {"status": "cancelled"}


async def test_after_the_end_a_client_is_told_to_stay_away(site: Site) -> None:
    run = await _triggered(site)
    await site.local.post(f"/api/v1/runs/{run['id']}/cancel")

    async with site.served() as served, httpx2.AsyncClient() as client:
        url = f"{served.url}/api/v1/runs/{run['id']}/events"
        async with _stream(served, run["id"]) as events:
            end = [event async for event in events][-1]
        assert end.id is not None
        again = await client.get(url, headers={"Last-Event-ID": end.id})

    assert again.status_code == 204


async def test_attempts_follow_each_other(site: Site) -> None:
    retry = {"max_attempts": 3, "backoff_ms": 0}
    run = await _triggered(site, retry=retry)

    async def greet(job: Any) -> None:
        await _say(site, job.id, 1, 2)
        if job.attempt < 3:
            raise RuntimeError("not yet")

    async with site.served() as served, site.working(greet=greet), _stream(served, run["id"]) as events:
        seen = [event async for event in events]
        async with _stream(served, run["id"], last="2.1") as later:
            resumed = [event.id async for event in later if event.name == "log"]

    assert resumed == ["2.2", "3.1", "3.2"]
    assert [event.id for event in seen if event.name == "log"] == [f"{a}.{s}" for a in (1, 2, 3) for s in (1, 2)]
    detail = (await site.local.get(f"/api/v1/runs/{run['id']}")).json()
    assert [(job["attempt"], job["status"]) for job in detail["attempts"]] == [
        (1, "FAILED"),
        (2, "FAILED"),
        (3, "COMPLETED"),
    ]


async def test_what_nobody_may_see_is_not_followed(site: Site) -> None:
    is_problem(await site.local.get("/api/v1/runs/run_none/events"), 404, "unknown_run")


async def test_a_server_that_stops_ends_its_streams_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.http.server.GRACE_S", 60)
    run = await _triggered(site)
    clock = site.queue.storage.clock

    async with site.served() as served, _stream(served, run["id"]) as events:
        assert (await anext(events)).name == "status"
        asked_at = clock.lease_now()
        served.stop.set()
        assert [event async for event in events] == []
        await served.serving
        took = clock.lease_now() - asked_at

    assert took < 20_000_000, "not after the grace that a hung request would get"


async def test_a_client_that_leaves_leaves_nothing_behind(site: Site) -> None:
    run = await _triggered(site)
    clock = site.queue.storage.clock

    async with site.served() as served:
        async with _stream(served, run["id"]) as events:
            await anext(events)
            assert served.streams() == 1
        while served.streams():
            await clock.sleep(Micros(10_000))


def _with_small_buffers(host: str, port: int) -> socket.socket:
    """So that a socket is full soon, however large the machine lets it grow."""
    listening = _bound(host, port)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    return listening


async def test_nothing_is_piled_up_for_a_client_that_does_not_read(
    quick_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await _triggered(quick_site)
    many, text = 8 * LINES_AT_ONCE, "x" * 8_000
    now = quick_site.queue.storage.clock.now()
    lines = [LogLine(JobId(run["job_id"]), seq, now, LogLevel.INFO, text) for seq in range(1, many + 1)]
    await quick_site.queue.logs.keep(lines)
    await quick_site.local.post(f"/api/v1/runs/{run['id']}/cancel")
    pages: list[int] = []
    read = Logs.lines

    async def counted(self: Logs, job_id: JobId, *, after: int = 0, most: int = 1_000) -> list[LogLine]:
        pages.append(after)
        return await read(self, job_id, after=after, most=most)

    monkeypatch.setattr(Logs, "lines", counted)
    monkeypatch.setattr("duly.http.server._bound", _with_small_buffers)
    async with quick_site.served() as served:
        host, _, port = served.url.removeprefix("http://").partition(":")
        with socket.socket() as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            idle.connect((host, int(port)))
            idle.sendall(f"GET /api/v1/runs/{run['id']}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            while not pages:
                await quick_site.queue.storage.clock.sleep(Micros(10_000))
            # By the time that somebody else has read it all, the idle one's stream stands where the sockets are full.
            async with _stream(served, run["id"]) as events:
                seen = [event.data["seq"] async for event in events if event.name == "log"]
            read_to_the_end = pages.count(many)

    assert seen == list(range(1, many + 1))
    assert (pages.count(0), read_to_the_end) == (2, 1)


async def test_a_revoked_token_ends_its_streams(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.http.events.WELCOME_FOR", 0)
    run = await _triggered(site)
    token, secret = await site.queue.tokens.create(owner="ann", role=Role.ADMIN)

    async with (
        site.served() as served,
        _stream(served, run["id"], Authorization=f"Bearer {secret}") as events,
    ):
        assert (await anext(events)).name == "status"
        await site.queue.tokens.revoke(token.id, owner=None)
        assert [event async for event in events] == []


async def test_a_token_that_expires_ends_its_streams(quick_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.http.events.WELCOME_FOR", 0)
    run = await _triggered(quick_site)
    async with quick_site.served() as served:
        soon = Instant(quick_site.queue.storage.clock.now() + 5_000_000)
        _, secret = await quick_site.queue.tokens.create(owner="ann", role=Role.ADMIN, expires_at=soon)
        headers = {"Authorization": f"Bearer {secret}"}
        async with _stream(served, run["id"], **headers) as events:
            assert [event.name async for event in events] == ["status"]
        assert quick_site.queue.storage.clock.now() >= soon
        async with httpx2.AsyncClient() as client:
            is_problem(await client.get(f"{served.url}/api/v1/runs/{run['id']}/events", headers=headers), 401)


async def test_a_token_revoked_while_much_is_read_ends_its_stream(
    quick_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.http.events.WELCOME_FOR", 0)
    run = await _triggered(quick_site)
    await _say(quick_site, run["job_id"], *range(1, 5 * LINES_AT_ONCE))
    token, secret = await quick_site.queue.tokens.create(owner="ann", role=Role.ADMIN)
    read, pages = Logs.lines, list[int]()

    async def revoking(self: Logs, job_id: JobId, *, after: int = 0, most: int = 1_000) -> list[LogLine]:
        pages.append(after)
        if len(pages) == 2:
            await quick_site.queue.tokens.revoke(token.id, owner=None)
        return await read(self, job_id, after=after, most=most)

    monkeypatch.setattr(Logs, "lines", revoking)
    async with quick_site.served() as served, _stream(served, run["id"], Authorization=f"Bearer {secret}") as events:
        lines = [event async for event in events if event.name == "log"]

    assert len(lines) == LINES_AT_ONCE + 1
    assert pages == [0, LINES_AT_ONCE]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (None, Place()),
        ("", Place()),
        ("2.17", Place(2, 17)),
        ("2.17.end", Place(2, 17, has_ended=True)),
        ("nonsense", Place()),
        ("1.-2", Place()),
        ("9" * 30 + ".1", Place()),
        ("\u0661.\u0661", Place()),
    ],
)
def test_where_a_client_goes_on(given: str | None, place: Place) -> None:
    assert Place.of(given) == place
    assert given in (None, "") or Place.of(str(place)) == place
