"""Every route there is, found in the API's own description, so that a new one is covered when it comes."""

import re
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from duly.domain.tokens import Role
from duly.http.access import Access
from duly.http.api import create_api
from duly.http.description import operations
from duly.http.door import NOBODY, ROLE
from tests.http.site import Site, is_problem, waiting_review

# What each route that takes a body is sent, so that nothing but the caller can be what is refused.
BODIES: Mapping[str, Mapping[str, Any]] = {
    "create_schedule": {"target": "greet", "every": "1h", "pool": "wide"},
    "update_schedule": {"priority": 9},
    "preview_cadence": {"every": "1h"},
    "backfill_schedule": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"},
    "preview_backfill": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"},
    "cancel_run": {"reason": "hers"},
    "cancel_job": {"reason": "hers"},
    "put_job": {"kind": "greet", "pool": "wide"},
    "call_template": {"params": {}},
    "deploy_workflow": {"name": "hers-too", "nodes": [{"id": "a", "action": {"http": {"url": "https://a.example"}}}]},
    "launch_workflow": {"params": {}},
    "upsert_cron_schedule": {
        "workflow_id": "hers",
        "version": 1,
        "user_id": "ann",
        "cron_expr": "0 7 * * *",
        "timezone": "UTC",
    },
    "pause_cron_schedule": {"schedule_id": "hers", "paused": True},
    "start_run": {
        "workflow_id": "hers",
        "version": 1,
        "user_id": "ann",
        "idempotency_key": "k",
        "scheduled_for": "2026-01-01T00:00:00Z",
    },
    "call_back": {"status": "STARTED"},
    "update_pool": {"slots": 1},
    "edit_job": {"params": {"to": "eve"}},
    "move_job": {"next": True},
    "reorder_jobs": {"jobs": ["job_0"]},
    "preview_retry": {"kind": "greet"},
    "retry_failed": {"kind": "greet"},
    "create_template": {"name": "eves", "kind": "greet"},
    "update_template": {"priority": 9},
    "put_from_template": {"params": {}},
    "create_group": {"members": [{"job": {"kind": "greet", "pool": "wide"}}]},
    "cancel_group": {"reason": "hers"},
    "retry_group": {"cap": 1},
    "preview_group_retry": {"cap": 1},
    "legacy_put_job": {"type": "greet"},
    "create_webhook": {"url": "https://example.com/hook"},
    "update_webhook": {"note": "hers"},
    "rotate_webhook": {"keep_old_s": 60},
    "disable_webhook": {"reason": "hers"},
    "decide_review": {"decision": "approve"},
    "create_account": {"name": "main"},
    "credit_account": {"amount": "5.00", "key": "first"},
    "create_grant": {"account_id": "acct_1", "scopes": ["graph:execute:*"]},
    "set_budget": {"scope": "account", "scope_id": "acct_1", "window": "day", "limit": "1.00"},
    "create_token": {"owner": "eve", "role": "admin"},
}
# Things that have no owner: everybody meets them alike.
SHARED = {"get_pool", "list_queue"}


def _described() -> list[tuple[str, str, dict[str, Any]]]:
    schema = create_api(None, access=Access(is_local=True)).openapi()  # type: ignore[arg-type] # only described
    hidden = {"operationId": "docs", "summary": "", "responses": {}}
    return [*operations(schema), *((path, "get", hidden) for path in ("/", "/docs", "/openapi.json"))]


ROUTES = _described()
NAMES = [f"{method} {path}" for path, method, _ in ROUTES]


async def _call(
    client: httpx2.AsyncClient, path: str, method: str, operation: Mapping[str, Any], **names: str
) -> httpx2.Response:
    body = BODIES.get(operation["operationId"])
    assert (body is not None) or "requestBody" not in operation, "say in BODIES what this route is sent"
    return await client.request(method.upper(), path.format(**{"run_id": "exe_0", **names}), json=body)


@pytest.mark.parametrize(("path", "method", "operation"), ROUTES, ids=NAMES)
async def test_without_a_token_nothing_but_health_is_answered(
    quick_site: Site, path: str, method: str, operation: dict[str, Any]
) -> None:
    answer = await _call(quick_site.stranger, path, method, operation, id="a", name="wide", run_id="a")

    if path.startswith("/api/v1/inbound/"):  # whose callers sign instead
        is_problem(answer, 404, "unknown_source")
    elif operation.get(ROLE) == NOBODY:
        assert path in ("/healthz", "/readyz")
        assert answer.status_code == 200
    else:
        is_problem(answer, 401, "unauthenticated")


async def _purse(client: httpx2.AsyncClient) -> dict[str, str]:
    account = (await client.post("/api/v1/accounts", json={"name": "hers"})).json()["id"]
    grant = await client.post("/api/v1/grants", json={"account_id": account, "scopes": ["graph:execute:*"]})
    asked = {"scope": "account", "scope_id": account, "window": "day", "limit": "1.00"}
    budget = await client.post("/api/v1/budgets", json=asked)
    return {"accounts": account, "grants": grant.json()["id"], "budgets": budget.json()["id"]}


@pytest.mark.req("GRAPH-11", error=True)
async def test_what_belongs_to_another_does_not_exist(site: Site) -> None:
    """Two owners and every route: 404 as for what was never there, and hers is as it was."""
    ann, eve = await site.caller("ann"), await site.caller("eve")
    schedule = await site.schedule(ann, id="hers")
    run = (await ann.post("/api/v1/schedules/hers/trigger")).json()
    await ann.post("/api/v1/templates", json={"name": "her-mould", "kind": "greet"})
    group = (await ann.post("/api/v1/groups", json=BODIES["create_group"])).json()
    things = {"schedules": "hers", "runs": run["id"], "jobs": run["job_id"], "templates": "her-mould"}
    things |= {"groups": group["id"], "api": run["job_id"], "direct": "her-mould"}
    things["webhooks"] = (await ann.post("/api/v1/webhooks", json=BODIES["create_webhook"])).json()["id"]
    things["deliveries"] = (await ann.post(f"/api/v1/webhooks/{things['webhooks']}/test")).json()["id"]
    await ann.post("/api/v1/workflows", json={**BODIES["deploy_workflow"], "name": "hers"})
    things |= {"workflows": "hers", "run-launcher": "exe_1"}
    review = await waiting_review(site.queue)
    things["reviews"] = review.id
    things |= await _purse(ann)
    before = (await ann.get("/api/v1/schedules/hers")).json()
    covered = 0

    for path, method, operation in ROUTES:
        noun = path.removeprefix("/api/v1").split("/")[1]
        if "{" not in path or operation["operationId"] in SHARED or operation.get(ROLE) in (Role.ADMIN.value, NOBODY):
            continue
        known = things[noun]
        hers = await _call(eve, path, method, operation, id=known, name=known, run_id=known)
        none = f"{known}0"
        nowhere = await _call(eve, path, method, operation, id=none, name=none, run_id=none)
        assert is_problem(hers, 404)["code"] == is_problem(nowhere, 404)["code"], (method, path)
        assert hers.json()["detail"].replace(known, "") == nowhere.json()["detail"].replace(none, "")
        covered += 1

    assert covered >= 30
    assert (await ann.get("/api/v1/schedules/hers")).json() == before
    assert before["revision"] == schedule["revision"]
    assert (await ann.get(f"/api/v1/runs/{run['id']}")).json()["status"] == "pending"
    assert (await ann.get(f"/api/v1/reviews/{review.id}")).json()["state"] == "open"


@pytest.mark.req("GRAPH-11")
async def test_lists_hold_only_what_is_the_callers(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")
    admin = await site.caller("root", Role.ADMIN)
    await site.schedule(ann, id="hers")
    await ann.post("/api/v1/schedules/hers/trigger")

    for url in ("/api/v1/schedules", "/api/v1/runs", "/api/v1/jobs"):
        assert (await eve.get(url)).json()["items"] == []
        assert len((await ann.get(url)).json()["items"]) == 1
        assert len((await admin.get(url)).json()["items"]) == 1
    is_problem(await eve.get("/api/v1/runs", params={"schedule_id": "hers"}), 404)


async def test_an_id_that_another_has_is_taken_without_a_word_about_it(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")
    await site.schedule(ann, id="hers")

    answer = await eve.post("/api/v1/schedules", json={**BODIES["create_schedule"], "id": "hers"})

    is_problem(answer, 409, "schedule_exists")
    assert "ann" not in answer.text


async def test_every_route_names_its_role_or_has_that_of_its_method(quick_site: Site) -> None:
    viewer = await quick_site.caller("ann", Role.VIEWER)
    for path, method, operation in ROUTES:
        answer = await _call(viewer, path, method, operation, id="none", name="wide", run_id="none")
        marked = operation.get(ROLE)
        is_open = marked in (NOBODY, Role.VIEWER.value) or (marked is None and method == "get")
        assert (answer.status_code == 403) is not is_open, (method, path, answer.status_code)


@pytest.mark.parametrize(("path", "method", "operation"), ROUTES, ids=NAMES)
async def test_no_route_passes_over_a_parameter_that_it_does_not_know(
    quick_site: Site, path: str, method: str, operation: dict[str, Any]
) -> None:
    answer = await _call(quick_site.local, f"{path}?shape=round", method, operation, id="a", name="wide", run_id="a")

    problem = is_problem(answer, 422, "invalid_input")
    assert [each["pointer"] for each in problem["errors"]] == ["/query/shape"]
    assert "no parameter 'shape'" in problem["detail"]


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("GET", "/api/v1/runs?schedule=a", "schedule_id"),
        ("DELETE", "/api/v1/schedules/a?withdrw=true", "withdraw"),
        ("GET", "/api/v1/jobs?Limit=3", "limit"),
    ],
)
async def test_a_parameter_that_is_nearly_known_is_refused_with_the_one_that_is_meant(
    quick_site: Site, method: str, path: str, meant: str
) -> None:
    await quick_site.schedule(id="a")

    problem = is_problem(await quick_site.local.request(method, path), 422, "invalid_input")

    assert problem["detail"].endswith(f"did you mean '{meant}'?")
    assert (await quick_site.local.get("/api/v1/schedules/a")).status_code == 200


async def test_what_is_said_of_strange_parameters_is_bounded(quick_site: Site) -> None:
    many = "&".join(f"{'x' * 300}{number}=1" for number in range(100))

    problem = is_problem(await quick_site.local.get(f"/api/v1/runs?{many}&%00=1&%ff=2"), 422)

    assert len(problem["errors"]) == 20
    assert len(problem["detail"]) < 2_000


async def test_the_root_leads_people_to_the_page_and_tells_programs_where_things_are(quick_site: Site) -> None:
    page = await quick_site.local.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    index = await quick_site.local.get("/")

    assert (page.status_code, page.headers["location"]) == (303, "/docs")
    assert index.json()["name"] == "Duly"
    assert {page.headers["vary"], index.headers["vary"]} == {"Accept"}
    for path in index.json()["links"].values():
        assert (await quick_site.local.get(path)).status_code == 200, path
    paths = (await quick_site.local.get("/openapi.json")).json()["paths"]
    nouns = {path for path, told in paths.items() if re.fullmatch("/api/v1/[a-z]+", path) and "get" in told}
    assert nouns <= set(index.json()["links"].values())
    is_problem(await quick_site.stranger.get("/"), 401)
