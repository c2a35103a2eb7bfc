"""Lists come in pages, and every page begins where the last one ended."""

import base64
import hashlib
import json
from typing import Any

import pytest

from duly.domain.jobs import NewJob
from duly.domain.logs import LogLevel, LogLine
from tests.http.site import POOL, Site, is_problem


async def _all(site: Site, url: str, *, limit: int, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        asked: dict[str, str | int] = {"limit": limit, **params, **({"cursor": cursor} if cursor else {})}
        page = (await site.local.get(url, params=asked)).json()
        assert len(page["items"]) <= limit
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


@pytest.mark.req("GRAPH-11")
@pytest.mark.parametrize("limit", [1, 2, 5, 6])
async def test_pages_hold_every_schedule_once(site: Site, limit: int) -> None:
    for name in ("c", "a", "e", "b", "d"):
        await site.schedule(id=name)

    assert [each["id"] for each in await _all(site, "/api/v1/schedules", limit=limit)] == ["a", "b", "c", "d", "e"]


async def test_pages_of_runs_revisions_and_jobs(site: Site) -> None:
    await site.schedule(id="a")
    runs = [(await site.local.post("/api/v1/schedules/a/trigger")).json() for _ in range(5)]
    for priority in range(1, 5):
        await site.local.patch("/api/v1/schedules/a", json={"priority": priority})

    newest_first = [run["id"] for run in reversed(runs)]
    assert [each["id"] for each in await _all(site, "/api/v1/runs", limit=2)] == newest_first
    assert [each["id"] for each in await _all(site, "/api/v1/schedules/a/runs", limit=2)] == newest_first
    revisions = await _all(site, "/api/v1/schedules/a/revisions", limit=2)
    assert [each["revision"] for each in revisions] == [1, 2, 3, 4, 5]
    jobs = await _all(site, "/api/v1/jobs", limit=2, pool="wide")
    assert [each["run_id"] for each in jobs] == [run["id"] for run in runs]
    for job in jobs:
        await site.local.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert await _all(site, "/api/v1/jobs", limit=2) == []
    ended = await _all(site, "/api/v1/jobs", limit=2, ended="true", status="CANCELLED")
    assert [each["id"] for each in ended] == [job["id"] for job in reversed(jobs)]


async def test_runs_are_filtered(site: Site) -> None:
    for name in ("a", "b"):
        await site.schedule(id=name)
        await site.local.post(f"/api/v1/schedules/{name}/trigger")

    async def found(**params: str) -> list[str]:
        return [run["schedule_id"] for run in (await site.local.get("/api/v1/runs", params=params)).json()["items"]]

    assert await found() == ["b", "a"]
    assert await found(schedule_id="a") == ["a"]
    assert await found(status="success") == []
    assert await found(kind="manual", status="pending") == ["b", "a"]
    is_problem(await site.local.get("/api/v1/runs", params={"schedule_id": "c"}), 404, "unknown_schedule")
    is_problem(await site.local.get("/api/v1/runs", params={"status": "fine"}), 422)


async def test_the_log_of_a_job_in_pages(site: Site) -> None:
    put = await site.queue.jobs.put(NewJob(kind="greet", pool=POOL))
    now = site.queue.storage.clock.now()
    await site.queue.logs.keep([LogLine(put.job_id, seq, now, LogLevel.INFO, f"line {seq}") for seq in range(1, 6)])

    lines = await _all(site, f"/api/v1/jobs/{put.job_id}/log", limit=2)

    assert [(line["seq"], line["text"]) for line in lines] == [(seq, f"line {seq}") for seq in range(1, 6)]


def _forged(*parts: str, before: bytes = b"") -> str:
    return base64.urlsafe_b64encode(before + json.dumps(parts).encode()).decode().rstrip("=")


_FORGED = [
    _forged("schedules", "a"),
    *(_forged(noun, "a", before=bytes(6)) for noun in ("schedules", "runs", "tokens")),
]


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize("cursor", ["x", "é", "AAAA", "!" * 20, "A" * 2000, "%00", *_FORGED])
async def test_a_forged_cursor_is_refused(quick_site: Site, cursor: str) -> None:
    for url in ("/api/v1/schedules", "/api/v1/runs", "/api/v1/jobs", "/api/v1/tokens"):
        is_problem(await quick_site.local.get(url, params={"cursor": cursor}), 422)


def _with_a_right_sum(text: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()[:6] + text).decode().rstrip("=")


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize(
    "text",
    [
        b"5",
        b"[]",
        b"null",
        b'["schedules"]',
        b'["schedules",7]',
        b'["revisions","abc"]',
        b'["revisions","9999999999999999999999"]',
    ],
)
async def test_a_cursor_is_refused_for_what_it_says_even_if_its_sum_is_right(quick_site: Site, text: bytes) -> None:
    await quick_site.schedule(id="a")

    for url in ("/api/v1/schedules", "/api/v1/schedules/a/revisions"):
        is_problem(await quick_site.local.get(url, params={"cursor": _with_a_right_sum(text)}), 422, "invalid_cursor")


async def test_a_cursor_of_another_list_is_refused(quick_site: Site) -> None:
    for name in ("a", "b"):
        await quick_site.schedule(id=name)
    cursor = (await quick_site.local.get("/api/v1/schedules", params={"limit": 1})).json()["next_cursor"]

    is_problem(await quick_site.local.get("/api/v1/runs", params={"cursor": cursor}), 422, "invalid_cursor")


@pytest.mark.parametrize("limit", ["0", "201", "-1", "many", "1e2"])
async def test_a_page_has_1_to_200_items(quick_site: Site, limit: str) -> None:
    problem = is_problem(await quick_site.local.get("/api/v1/schedules", params={"limit": limit}), 422)

    assert problem["errors"][0]["pointer"] == "/query/limit"
