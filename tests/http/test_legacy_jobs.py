"""The older job routes: the same jobs, in the older words, and headers that announce their end."""

import re
from email.utils import parsedate_to_datetime

import httpx2
import pytest

from duly.domain.pools import DEFAULT_POOL
from tests.http.site import Site, is_problem


def _is_announced(answer: httpx2.Response, successor: str) -> None:
    assert re.fullmatch(r"@\d+", answer.headers["deprecation"])
    assert parsedate_to_datetime(answer.headers["sunset"]).year > 2026
    assert answer.headers["link"].startswith(f'<{successor}>; rel="successor-version"')


@pytest.mark.req("CON-004")
async def test_the_older_routes_work_beside_the_new_ones(site: Site) -> None:
    put = await site.local.post("/jobs", json={"type": "fail", "params": {"to": "you"}, "priority": 2})
    job = put.json()
    url = f"/jobs/{job['job_id']}"

    assert (put.status_code, job["status"], job["type"], job["params"]) == (201, "queued", "fail", {"to": "you"})
    _is_announced(put, "/api/v1/jobs")
    new = (await site.local.get(f"/api/v1{url}")).json()
    assert (new["kind"], new["input"], new["status"], new["priority"]) == ("fail", {"to": "you"}, "QUEUED", 2)
    read = await site.local.get(url)
    assert read.json() == job
    _is_announced(read, f"/api/v1{url}")
    listed = await site.local.get("/jobs")
    assert listed.json() == {"jobs": [job]}
    _is_announced(listed, "/api/v1/jobs")

    ended = await site.local.delete(url)
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    _is_announced(ended, f"/api/v1{url}/cancel")
    tried = await site.local.post(f"{url}/retry")
    assert (tried.status_code, tried.json()["retry_of"]) == (201, job["job_id"])
    stopped = await site.local.post(f"/jobs/{tried.json()['job_id']}/cancel")
    assert stopped.json()["status"] == "cancelled"
    assert len((await site.local.get("/jobs")).json()["jobs"]) == 2


@pytest.mark.req("CON-004")
@pytest.mark.req("DEC-006")
async def test_only_the_older_routes_say_the_older_words(site: Site) -> None:
    def fail(job: object) -> None:
        raise ValueError("no")

    ids = {}
    for kind in ("fine", "fail"):
        body = {"kind": kind, "retry": {"max_attempts": 1}}
        ids[kind] = (await site.local.post("/api/v1/jobs", json=body)).json()["id"]
    worker = site.queue.worker(handlers={"fine": lambda job: None, "fail": fail}, pools={DEFAULT_POOL: 1}, name="t")
    async with site.at_work(worker):
        for job_id in ids.values():
            await site.job_ended(job_id)

    for kind, old, now in (("fine", "succeeded", "COMPLETED"), ("fail", "error", "FAILED")):
        assert (await site.local.get(f"/jobs/{ids[kind]}")).json()["status"] == old
        answer = await site.local.get(f"/api/v1/jobs/{ids[kind]}")
        assert answer.json()["status"] == now
        assert "deprecation" not in answer.headers


@pytest.mark.req("CON-004", error=True)
async def test_what_an_older_route_refuses_says_so_too(site: Site) -> None:
    unknown = await site.local.get("/jobs/none")
    is_problem(unknown, 404, "unknown_job")
    _is_announced(unknown, "/api/v1/jobs/none")
    wrong = await site.local.post("/jobs", json={"kind": "greet"})
    is_problem(wrong, 422, "invalid_input")
    _is_announced(wrong, "/api/v1/jobs")
    strange = await site.local.get("/jobs/%0d%0aX-Injected:%20%F0%9F%90%8C%22%3E")
    assert strange.status_code in (404, 422)
    assert "x-injected" not in strange.headers
    _is_announced(strange, "/api/v1/jobs/%0D%0AX-Injected%3A%20%F0%9F%90%8C%22%3E")
    eve = await site.caller("eve")
    is_problem(await eve.post("/jobs", json={"type": "greet"}), 403)
