"""Jobs over HTTP: put by admins, once under an idempotency key, and refused in the body's own words."""

import asyncio
import hashlib
import json
from typing import Any

import pytest

from duly.domain.ids import JobId, Owner
from duly.domain.jobs import FinishedJob, NewJob
from duly.domain.requests import Claimed, Request
from duly.domain.tokens import Role
from tests.http.site import POOL, Site, is_problem

URL = "/api/v1/jobs"
GREET: dict[str, Any] = {"kind": "greet", "pool": "wide"}
KEY = {"Idempotency-Key": "k-1"}


@pytest.mark.req("GRAPH-11")
async def test_a_job_is_put_and_run(site: Site) -> None:
    put = await site.local.post(URL, json={**GREET, "params": {"to": "ann"}})

    assert put.status_code == 201
    job = put.json()
    assert put.headers["location"] == f"{URL}/{job['id']}"
    assert (job["kind"], job["input"], job["status"], job["run_id"]) == ("greet", {"to": "ann"}, "QUEUED", None)
    assert (await site.local.get(f"{URL}/{job['id']}")).json() == job
    done = asyncio.Event()
    async with site.working(greet=lambda job: done.set()):
        await done.wait()


async def test_a_job_asks_for_what_its_body_says(site: Site) -> None:
    asked = {
        **GREET,
        "key": "hello",
        "lane": "ann",
        "run_at": "2099-01-01T02:00:00+01:00",
        "resources": ["default"],
        "priority": 7,
        "retry": {"max_attempts": 5},
        "timeout_ms": 900,
    }

    job = (await site.local.post(URL, json=asked)).json()

    expected = {"key": "hello", "lane": "ann", "run_at": "2099-01-01T01:00:00Z", "priority": 7, "max_attempts": 5}
    assert {name: job[name] for name in expected} == expected
    kept = await site.queue.jobs.get(JobId(job["id"]))
    assert not isinstance(kept, FinishedJob)
    assert (kept.resources, kept.timeout_ms, kept.retry.backoff_ms) == (("default",), 900, 2000)


async def test_a_key_that_a_live_job_has_stands_for_one_job(site: Site) -> None:
    first = await site.local.post(URL, json={**GREET, "key": "a", "params": {"n": 1}})
    second = await site.local.post(URL, json={**GREET, "key": "a", "params": {"n": 2}})

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.headers["location"] == first.headers["location"]
    assert (second.json()["id"], second.json()["input"]) == (first.json()["id"], {"n": 2})
    assert len((await site.local.get(URL)).json()["items"]) == 1


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_jobs_without_a_schedule_are_for_admins_to_put(site: Site, role: Role) -> None:
    caller, admin = await site.caller("ann", role), await site.caller("root", Role.ADMIN)

    is_problem(await caller.post(URL, json=GREET), 403, "forbidden")
    put = await admin.post(URL, json=GREET)
    assert put.status_code == 201
    is_problem(await caller.get(f"{URL}/{put.json()['id']}"), 404, "unknown_job")


@pytest.mark.parametrize(
    ("fields", "code", "pointer", "said"),
    [
        ({"kind": "No Such"}, "invalid_input", "/kind", "kind: "),
        ({"input": {}}, "invalid_input", "/input", "there is no field 'input'; did you mean 'params'?"),
        ({"params": {"a": "\0"}}, "invalid_input", "/params/a", "params.a, position 0: "),
        ({"params": []}, "invalid_input", "/params", ""),
        ({"pool": "nowhere"}, "unknown_pool", "/pool", ""),
        ({"resources": ["nowhere"]}, "unknown_pool", "/resources", ""),
        ({"retry": {"max_attempts": 0}}, "invalid_input", "/retry/max_attempts", "retry.max_attempts: "),
        ({"run_at": "soon"}, "invalid_input", "/run_at", ""),
        ({"timeout_ms": 0}, "invalid_input", "/timeout_ms", ""),
        ({"priority": 99_999}, "invalid_input", "/priority", ""),
        ({"key": ""}, "invalid_input", "/key", ""),
    ],
)
async def test_what_cannot_be_put_is_refused_with_its_place(
    quick_site: Site, fields: dict[str, Any], code: str, pointer: str, said: str
) -> None:
    problem = is_problem(await quick_site.local.post(URL, json={**GREET, **fields}), 422, code)

    assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert problem["errors"][0]["detail"].startswith(said)
    assert (await quick_site.local.get(URL)).json()["items"] == []


async def test_a_pool_that_drains_takes_no_job(quick_site: Site) -> None:
    await quick_site.local.patch("/api/v1/pools/wide", json={"mode": "draining"})

    is_problem(await quick_site.local.post(URL, json=GREET), 409)


async def test_under_an_idempotency_key_it_is_put_once(site: Site) -> None:
    first = await site.local.post(URL, json=GREET, headers=KEY)
    again = await site.local.post(URL, json=GREET, headers=KEY)

    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert len((await site.local.get(URL)).json()["items"]) == 1


@pytest.mark.parametrize("has_ended", [False, True])
async def test_who_takes_over_a_cut_put_finds_its_job(site: Site, has_ended: bool) -> None:
    """The server died after the put and before it kept the answer; the job may have ended since."""
    body = json.dumps(GREET).encode()
    hashed = hashlib.sha256(f"POST {URL}?\n[]\n".encode() + body).hexdigest()
    request = Request(owner=Owner("local"), route=f"admin POST {URL}", key="k-1", hash=hashed)
    claimed = await site.queue.requests.claim(request)
    assert isinstance(claimed, Claimed)
    first = (await site.queue.jobs.put(NewJob(kind="greet", pool=POOL), job_id=JobId(f"job_{claimed.draw}"))).job_id
    if has_ended:
        await site.queue.jobs.cancel(first, reason="not needed")
    await site.queue.requests.abandon(request, claimed)

    answer = await site.local.post(URL, content=body, headers={**KEY, "Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["id"]) == (201, first)
    live, ended = [(await site.local.get(URL, params={"ended": each})).json()["items"] for each in ("false", "true")]
    assert len(live) + len(ended) == 1


@pytest.mark.req("RISK-01")
async def test_a_pool_is_given_a_limit_per_owner(site: Site) -> None:
    assert (await site.local.patch("/api/v1/pools/wide", json={"per_owner": 2})).json()["per_owner"] == 2
    assert (await site.local.get("/api/v1/pools/wide")).json()["per_owner"] == 2
    is_problem(await site.local.patch("/api/v1/pools/wide", json={"per_owner": 0}), 422, "invalid_input")
    assert (await site.local.patch("/api/v1/pools/wide", json={"per_owner": None})).json()["per_owner"] is None
