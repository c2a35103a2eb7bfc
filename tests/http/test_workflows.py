"""Workflows over HTTP: deployed, looked at, run; and the routes for deployers and executors elsewhere."""

import json
from typing import Any

import httpx2
import jwt
import pytest

from duly.bootstrap import Registry
from duly.domain.ids import JobId
from duly.domain.instants import SECOND
from duly.http.api import create_api
from duly.http.cron import PREFIXES
from duly.http.services import AUDIENCE, TYPE, ServiceAccess, ServicesToo
from tests.http.site import Site, is_problem

FLOW: dict[str, Any] = {
    "name": "news",
    "nodes": [{"id": "a", "action": {"http": {"url": "https://a.example/x"}}, "inputs": {"topic": {"param": "topic"}}}],
    "params": {"topic": "ai"},
    "triggers": [{"id": "daily", "type": "schedule_based", "cron_expr": "0 7 * * *", "timezone": "Europe/Vienna"}],
}
UPSERT = {
    "schedule_id": "mine",
    "workflow_id": "news",
    "version": 1,
    "user_id": "ann",
    "cron_expr": "0 7 * * *",
    "timezone": "Europe/Vienna",
    "start_at": "2020-01-01T00:00:00Z",
    "jitter_ms": 500,
    "overlap_policy": "queue",
    "catchup_policy": "spread",
}
START = {
    "workflow_id": "news",
    "version": 1,
    "user_id": "ann",
    "scheduled_for": "2026-01-01T06:00:00Z",
    "idempotency_key": "k1",
}
SECRET = "an-internal-token-of-more-than-32-bytes"  # noqa: S105


@pytest.mark.req("CRON-09")
async def test_a_workflow_is_deployed_looked_at_run_and_undeployed(site: Site) -> None:
    ann = await site.caller("ann")

    made = await ann.post("/api/v1/workflows", json=FLOW)
    again = (await ann.post("/api/v1/workflows", json=FLOW)).json()
    changed = (await ann.post("/api/v1/workflows", json={**FLOW, "triggers": []})).json()
    shown = (await ann.get("/api/v1/workflows/news", params={"version": 1})).json()
    versions = (await ann.get("/api/v1/workflows/news/versions", params={"limit": 1})).json()
    more = await ann.get("/api/v1/workflows/news/versions", params={"cursor": versions["next_cursor"]})
    launched = await ann.post("/api/v1/workflows/news/runs", json={}, headers={"Idempotency-Key": "one"})
    repeated = await ann.post("/api/v1/workflows/news/runs", json={}, headers={"Idempotency-Key": "one"})

    assert made.status_code == 201, made.text
    assert (made.json()["version"], made.json()["is_new"]) == (1, True)
    ((daily,),) = (made.json()["schedules"],)
    assert (daily["schedule_id"], daily["fate"]) == ("workflow:news:daily", "created")
    assert daily["next_run_at"] is not None
    assert (again["version"], again["is_new"], again["schedules"][0]["fate"]) == (1, False, "unchanged")
    assert (changed["version"], changed["schedules"][0]["fate"]) == (2, "deleted")
    assert (shown["newest"], shown["version"], shown["document"]["triggers"]) == (2, 1, FLOW["triggers"])
    assert [each["version"] for each in (*versions["items"], *more.json()["items"])] == [2, 1]
    assert (launched.status_code, launched.json()["version"]) == (201, 2)
    assert repeated.json() == launched.json()
    assert (await ann.get(f"/api/v1/jobs/{launched.json()['job_id']}")).json()["kind"] == "graph.run"
    assert (await ann.delete("/api/v1/workflows/news")).json() == {"schedules": []}
    is_problem(await ann.post("/api/v1/workflows/news/runs", json={}), 409, "workflow_not_deployed")


@pytest.mark.req("CRON-09", error=True)
async def test_a_document_that_means_nothing_is_refused_with_its_place(quick_site: Site) -> None:
    nodes = [{"id": "a", "action": {"http": {"url": "https://a.example"}}, "needs": ["b"]}]

    problem = is_problem(await quick_site.local.post("/api/v1/workflows", json={"name": "x", "nodes": nodes}), 422)
    unknown = is_problem(
        await quick_site.local.post("/api/v1/workflows", json={"name": "x", "nodes": [{"id": "a", "action": "b"}]}), 422
    )

    assert problem["errors"][0]["pointer"] == "/nodes/0/needs"
    assert "node 'a' needs 'b', which is not there" in problem["detail"]
    assert "no program has an action 'b'" in unknown["detail"]


async def test_a_run_shows_what_became_of_each_node(site: Site) -> None:
    flow = {**FLOW, "nodes": [{**FLOW["nodes"][0], "retries": {"max_attempts": 1}}], "triggers": []}
    flow["nodes"][0]["action"] = {"http": {"url": "http://127.0.0.1:1/nobody"}}
    await site.local.post("/api/v1/workflows", json=flow)
    await site.local.post("/api/v1/workflows/news/runs", json={})
    graph_runs = site.queue.graph_runs(Registry())
    try:
        async with site.working_on("graphs", {"graph.run": graph_runs}):
            while not (runs := (await site.local.get("/api/v1/workflows/news/runs")).json()["items"]) or (
                runs[0]["status"] != "done"
            ):
                await site.heard()
    finally:
        await graph_runs.close()

    told = (await site.local.get(f"/api/v1/workflows/news/runs/{runs[0]['run_id']}")).json()
    assert (told["ok"], told["error_code"], told["version"]) == (False, "graph_error", 1)
    (node,) = told["nodes"]
    assert (node["id"], node["state"], node["tries"]) == ("a", "failed", 1)
    assert "could not be reached" in node["error"]
    is_problem(await site.local.get("/api/v1/workflows/none/runs/exe_1"), 404, "unknown_workflow")


@pytest.mark.req("CRON-01")
@pytest.mark.req("CRON-15")
async def test_schedules_and_runs_are_shown_field_by_field(site: Site) -> None:
    ann = await site.caller("ann")
    await ann.post("/api/v1/workflows", json={**FLOW, "triggers": []})

    upserted = await ann.post("/schedules/upsert", json=UPSERT)
    paused = await ann.post("/schedules/pause", json={"schedule_id": "mine", "paused": True})
    while_paused = (await ann.get("/schedules/mine")).json()
    await ann.post("/schedules/upsert", json=UPSERT)
    shown = (await ann.get("/schedules/mine")).json()
    run = await site.queue.schedules.run_now("mine", owner="ann")
    ((row,),) = ((await ann.get("/schedules/mine/runs")).json()["items"],)

    assert upserted.status_code == 200, upserted.text
    assert upserted.json() == {"schedule_id": "mine", "next_run_at": shown["next_run_at"]}
    assert (paused.status_code, while_paused["paused"], while_paused["preview"]) == (204, True, [])
    assert set(shown) == {*UPSERT, "end_at", "next_run_at", "paused", "updated_at", "preview"}
    assert {name: shown[name] for name in UPSERT} == UPSERT
    assert (shown["paused"], len(shown["preview"]), shown["preview"][0]) == (False, 5, shown["next_run_at"])
    assert set(row) == {"idempotency_key", "schedule_id", "run_at", "status", "run_id", "created_at", "updated_at"}
    assert (row["status"], row["schedule_id"]) == ("ENQUEUED", "mine")
    job = await site.queue.jobs.get(JobId(str(run.job_id)))
    assert row["idempotency_key"] == job.key
    assert (await ann.delete("/schedules/mine")).status_code == 204
    is_problem(await ann.get("/schedules/mine"), 404, "unknown_schedule")


@pytest.mark.req("CRON-01", error=True)
@pytest.mark.req("CRON-15", error=True)
async def test_what_is_wrong_is_named_in_the_words_of_the_request(quick_site: Site) -> None:
    ann = await quick_site.caller("ann")
    await ann.post("/api/v1/workflows", json={**FLOW, "triggers": []})

    for wrong, pointer in (
        ({"cron_expr": "0 7 * *"}, "/cron_expr"),
        ({"timezone": "Mars/Base"}, "/timezone"),
        ({"overlap_policy": "never"}, "/overlap_policy"),
        ({"catchup_policy": "later"}, "/catchup_policy"),
        ({"user_id": "eve"}, "/user_id"),
        ({"colour": "red"}, "/colour"),
    ):
        problem = is_problem(await ann.post("/schedules/upsert", json={**UPSERT, **wrong}), 422)
        assert problem["errors"][0]["pointer"] == pointer
    is_problem(await ann.post("/schedules/upsert", json={**UPSERT, "version": 4}), 404, "unknown_workflow")
    is_problem(await ann.get("/schedules/mine"), 404)


@pytest.mark.req("CRON-08")
async def test_the_launcher_answers_whether_it_runs_and_starts_it_once(site: Site) -> None:
    ann = await site.caller("ann")
    await ann.post("/api/v1/workflows", json={**FLOW, "triggers": []})

    answers = [(await ann.post("/run-launcher/start", json=START)).json() for _ in range(3)]
    nowhere = await ann.post("/run-launcher/start", json={**START, "workflow_id": "none"})

    assert (answers, nowhere.json()) == ([True] * 3, False)
    assert len((await ann.get("/api/v1/jobs")).json()["items"]) == 1
    is_problem(await ann.post("/run-launcher/start", json={**START, "scheduled_for": "2026-01-02T06:00:00Z"}), 422)


@pytest.mark.req("CRON-10", error=True)
async def test_a_call_back_about_what_is_not_there_is_refused(quick_site: Site) -> None:
    is_problem(
        await quick_site.local.post("/run-launcher/callbacks/exe_1", json={"status": "SUCCESS"}),
        404,
        "unknown_execution",
    )
    is_problem(await quick_site.local.post("/run-launcher/callbacks/exe_1", json={"status": "LOST"}), 422)


@pytest.mark.req("CRON-13")
async def test_services_come_in_by_a_signed_token_on_these_paths_alone(quick_site: Site) -> None:
    signed = _signed(quick_site, SECRET)
    service = _remote(quick_site, signed)
    await service.post("/api/v1/workflows", json=FLOW)
    ann = await quick_site.caller("ann")
    await ann.post("/api/v1/workflows", json={**FLOW, "triggers": []})

    assert (await service.post("/schedules/upsert", json=UPSERT)).status_code == 200
    assert (await service.post("/run-launcher/start", json=START)).json() is True
    assert (await ann.get("/schedules/mine")).json()["user_id"] == "ann"
    is_problem(await service.get("/api/v1/schedules"), 401)


@pytest.mark.req("CRON-13", error=True)
async def test_a_token_that_is_old_or_signed_by_somebody_else_is_none(quick_site: Site) -> None:
    for token in (
        _signed(quick_site, "x" * 40),
        _signed(quick_site, SECRET, exp=1),
        _signed(quick_site, SECRET, aud="others"),
        json.dumps(START),
    ):
        is_problem(await _remote(quick_site, token).post("/run-launcher/start", json=START), 401, "unauthenticated")


def _signed(site: Site, secret: str, **claims: Any) -> str:
    now = site.queue.storage.clock.now() // SECOND
    said = {"aud": AUDIENCE, "sub": "compiler", "exp": now + 600, **claims}
    return jwt.encode(said, secret, algorithm="HS256", headers={"typ": TYPE})


def _remote(site: Site, token: str) -> httpx2.AsyncClient:
    access = ServicesToo(is_local=False, services=ServiceAccess(secret=SECRET), prefixes=PREFIXES)
    return site.client(create_api(site.queue, access=access), Authorization=f"Bearer {token}")
