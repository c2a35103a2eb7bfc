"""What failed, over HTTP: one vocabulary, always tried again by hand, in bulk only as previewed and capped."""

from typing import Any

import pytest

from duly.domain.ids import JobId
from duly.domain.jobs import JobStatus
from tests.http.site import Site, is_problem

JOBS = "/api/v1/jobs"
FAILING: dict[str, Any] = {"kind": "fail", "pool": "wide", "retry": {"max_attempts": 2, "backoff_ms": 0}}


def _fail(job: object) -> None:
    raise ValueError("no")


async def _failed(site: Site, count: int = 1) -> list[str]:
    """Jobs that have used up their attempts; answers the last ones, oldest first."""
    ids = [(await site.local.post(JOBS, json=FAILING)).json()["id"] for _ in range(count)]
    async with site.working(fail=_fail):
        return [(await site.job_ended(job_id))["id"] for job_id in ids]


@pytest.mark.req("DEC-007")
@pytest.mark.req("DEC-001")
async def test_what_has_failed_for_good_is_tried_again_by_its_run(site: Site) -> None:
    (last,) = await _failed(site)

    key = {"Idempotency-Key": "k-1"}
    tried = await site.local.post(f"/api/job-runs/{last}/retry", headers=key)
    again = await site.local.post(f"/api/job-runs/{last}/retry", headers=key)

    assert (tried.status_code, again.content) == (201, tried.content)
    job = tried.json()
    assert (job["retry_of"], job["attempt"], job["max_attempts"], job["status"]) == (last, 3, 4, "QUEUED")
    assert tried.headers["location"] == f"{JOBS}/{job['id']}"
    async with site.working(fail=lambda job: None):
        done = await site.job_ended(job["id"])
    assert done["status"] == "COMPLETED"
    chain = (await site.local.get(f"{JOBS}/{last}/chain")).json()["items"]
    assert [each["status"] for each in chain] == ["FAILED", "FAILED", "COMPLETED"]
    # Completed ones, too: always.
    assert (await site.local.post(f"{JOBS}/{job['id']}/retry")).status_code == 201


@pytest.mark.req("DEC-007", error=True)
async def test_what_is_still_tried_is_not_tried_beside_itself(site: Site) -> None:
    job = (await site.local.post(JOBS, json=FAILING)).json()

    is_problem(await site.local.post(f"/api/job-runs/{job['id']}/retry"), 409, "chain_live")
    is_problem(await site.local.post("/api/job-runs/job_none/retry"), 404, "unknown_job")


@pytest.mark.req("OWN-05")
async def test_a_bulk_retry_touches_what_its_preview_showed(site: Site) -> None:
    first, second, third = await _failed(site, 3)
    listed = [job["id"] for job in (await site.local.get(f"{JOBS}/failed")).json()["items"]]
    assert set(listed) == {first, second, third}

    asked = {"kind": "fail", "cap": 2}
    preview = (await site.local.post(f"{JOBS}/failed/retry/preview", json=asked)).json()
    assert (preview["count"], preview["more"], preview["jobs"]) == (2, True, listed[:2])
    assert (await site.local.get(JOBS)).json()["items"] == []

    meant = {"jobs": [*preview["jobs"], "job_none"]}
    done = (await site.local.post(f"{JOBS}/failed/retry", json=meant)).json()
    assert (done["jobs"], len(done["retried"]), done["skipped"]) == (listed[:2], 2, [])
    left = [job["id"] for job in (await site.local.get(f"{JOBS}/failed")).json()["items"]]
    assert left == listed[2:]


@pytest.mark.req("OWN-05", error=True)
async def test_a_bulk_retry_takes_a_cap_and_touches_nothing_of_others(site: Site) -> None:
    await _failed(site, 2)
    eve = await site.caller("eve")

    for wrong in ({"cap": 0}, {"cap": 10_001}, {"kinds": "fail"}, {"since": "soon"}):
        is_problem(await site.local.post(f"{JOBS}/failed/retry", json=wrong), 422)
    assert (await eve.get(f"{JOBS}/failed")).json()["items"] == []
    done = (await eve.post(f"{JOBS}/failed/retry", json={})).json()
    assert (done["count"], done["retried"]) == (0, [])
    assert len((await site.local.get(f"{JOBS}/failed", params={"kind": "fail", "pool": "wide"})).json()["items"]) == 2
    assert (await site.local.get(f"{JOBS}/failed", params={"kind": "other"})).json()["items"] == []


@pytest.mark.req("DEC-006")
async def test_a_job_shows_one_vocabulary_wherever_it_is_seen(site: Site) -> None:
    """And storage says the same words: what ended is read back as it was written."""
    job = (await site.local.post(JOBS, json={"kind": "fine", "pool": "wide"})).json()
    waiting = (await site.local.get(f"{JOBS}?status=QUEUED")).json()["items"]
    async with site.working(fine=lambda job: None):
        await site.job_ended(job["id"])
    (failed,) = await _failed(site)
    gone = (await site.local.post(JOBS, json={"kind": "fine", "pool": "wide"})).json()
    cancelled = (await site.local.post(f"{JOBS}/{gone['id']}/cancel")).json()

    assert (job["status"], [each["id"] for each in waiting], cancelled["status"]) == (
        "QUEUED",
        [job["id"]],
        "CANCELLED",
    )
    for status, job_id in (("COMPLETED", job["id"]), ("FAILED", failed), ("CANCELLED", gone["id"])):
        items = (await site.local.get(JOBS, params={"ended": "true", "status": status})).json()["items"]
        assert job_id in [each["id"] for each in items]
        kept = await site.queue.jobs.get(JobId(job_id))
        assert getattr(kept, "status", None) == JobStatus(status)


@pytest.mark.req("DEC-006", error=True)
@pytest.mark.parametrize("word", ["succeeded", "error", "dispatched", "DISPATCHED", "completed"])
async def test_other_words_for_a_status_are_refused(quick_site: Site, word: str) -> None:
    is_problem(await quick_site.local.get(JOBS, params={"ended": "true", "status": word}), 422, "invalid_input")
