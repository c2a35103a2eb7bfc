"""Over HTTP mass actions show what they cost, and are refused beyond what they may."""

from typing import Any

import pytest

from tests.http.site import Site, is_problem

SPAN: dict[str, Any] = {"start": "2026-03-01T00:00:00Z", "end": "2026-03-01T02:30:00Z"}


async def dear(site: Site) -> None:
    account = await site.queue.accounts.create(owner="local", name="main")
    await site.queue.accounts.credit(account.id, amount=1_000_000, key="first")
    params = {"graph_id": "python:news", "input": {}, "max_cost": "0.50"}
    asked = {"target": "graph.run", "input": params, "cron": "0 * * * *", "id": "news"}
    answer = await site.local.post("/api/v1/schedules", json=asked)
    assert answer.status_code == 201, answer.text


@pytest.mark.req("OWN-05")
async def test_a_backfills_preview_has_its_cost_and_the_revision_that_it_is_of(site: Site) -> None:
    await dear(site)
    url = "/api/v1/schedules/news/backfill"

    preview = (await site.local.post(f"{url}/preview", json={**SPAN, "max_cost": "1.50"})).json()
    dearer = (await site.local.post(f"{url}/preview", json={**SPAN, "max_cost": "1.00"})).json()
    done = await site.local.post(url, json={**SPAN, "max_cost": "1.50", "expected_revision": preview["revision"]})

    cost = preview["cost"]
    assert [(each["amount"], each["covered"]) for each in cost["held"]] == [("1.50", False)]
    assert (cost["free"], cost["unbounded"], cost["covered"], cost["past"]) == (0, 0, False, [])
    assert (preview["fits"], dearer["fits"], done.status_code) == (True, False, 201)
    assert [run["scheduled_for"] for run in done.json()["runs"]] == preview["slots"]


@pytest.mark.req("OWN-05", error=True)
async def test_what_costs_too_much_or_has_changed_is_refused_by_its_field(site: Site) -> None:
    await dear(site)
    url = "/api/v1/schedules/news/backfill"

    beyond = is_problem(await site.local.post(url, json={**SPAN, "max_cost": "1.00"}), 422)
    wrong = is_problem(await site.local.post(f"{url}/preview", json={**SPAN, "max_cost": "1e3"}), 422)
    stale = await site.local.post(url, json={**SPAN, "expected_revision": 7})

    assert [each["pointer"] for each in (*beyond["errors"], *wrong["errors"])] == ["/max_cost", "/max_cost"]
    is_problem(stale, 409, "schedule_changed")
    assert (await site.local.get("/api/v1/runs")).json()["items"] == []


@pytest.mark.req("OWN-05")
async def test_retries_in_bulk_and_of_groups_show_their_cost(site: Site) -> None:
    bulk = (await site.local.post("/api/v1/jobs/failed/retry/preview", json={})).json()
    members = [{"job": {"kind": "greet", "pool": "wide"}}]
    group = (await site.local.post("/api/v1/groups", json={"members": members})).json()["id"]
    await site.local.post(f"/api/v1/groups/{group}/cancel", json={"reason": "enough"})

    preview = (await site.local.post(f"/api/v1/groups/{group}/retry/preview", json={"cap": 1})).json()
    again = (await site.local.post(f"/api/v1/groups/{group}/retry", json={"cap": 1, "max_cost": "0.00"})).json()

    assert (bulk["fits"], bulk["cost"]["sentences"]) == (True, ["It costs nothing."])
    assert (preview["count"], preview["fits"], preview["cost"]["free"]) == (1, True, 1)
    assert [member["kind"] for member in preview["members"]] == ["greet"]
    assert again["status"] == "RUNNING"
