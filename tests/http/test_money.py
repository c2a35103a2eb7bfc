"""Accounts, grants and budgets over HTTP, and what a schedule of a graph asks of them."""

import asyncio
from typing import Any

import httpx2
import pytest

from duly.domain.tokens import Role
from tests.http.site import Site, is_problem
from tests.http.test_executions import Service

PAID = "gpt-4o"
ALL = ["graph:execute:*"]


async def _account(client: httpx2.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/api/v1/accounts", json={"name": "main", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def _credit(site: Site, account: str, amount: str = "5.00", key: str = "first") -> httpx2.Response:
    return await site.local.post(f"/api/v1/accounts/{account}/credits", json={"amount": amount, "key": key})


def _graph(name: str = "python:news", model: str | None = None, **params: Any) -> dict[str, Any]:
    given = {} if model is None else {"model": model}
    target = {"graph_id": name, "input": given, **params}
    return {"id": "news", "target": "graph.run", "input": target, "every": "1h", "pool": "wide"}


async def test_an_account_is_opened_credited_and_read(site: Site) -> None:
    ann = await site.caller("ann")
    account = await _account(ann)

    credited = await _credit(site, account)
    again = await _credit(site, account)

    assert (credited.status_code, credited.json()) == (201, again.json())
    read = (await ann.get(f"/api/v1/accounts/{account}")).json()
    assert (read["owner"], read["currency"], read["granted"], read["available"]) == ("ann", "USD", "5.00", "5.00")
    await _credit(site, account, "0.000001", "second")
    first = (await ann.get(f"/api/v1/accounts/{account}/statement?limit=1")).json()
    cursor = first["next_cursor"]
    second = (await ann.get(f"/api/v1/accounts/{account}/statement?limit=1&cursor={cursor}")).json()
    assert [(line["kind"], line["reference"]) for line in first["items"] + second["items"]] == [
        ("credit", "second"),
        ("credit", "first"),
    ]
    assert first["account"]["available"] == "5.000001"
    assert [each["id"] for each in (await ann.get("/api/v1/accounts")).json()["items"]] == [account]


@pytest.mark.parametrize(
    "amount", ["-1", "0", "NaN", "1e9", "Infinity", "0.0000001", "99999999999", "", " 1", "+1", "٣"]
)
async def test_amounts_that_are_none_are_refused(quick_site: Site, amount: str) -> None:
    account = await _account(quick_site.local)

    problem = is_problem(await _credit(quick_site, account, amount), 422, "invalid_input")

    assert problem["errors"][0]["pointer"] == "/amount"
    assert (await quick_site.local.get(f"/api/v1/accounts/{account}")).json()["granted"] == "0.00"


async def test_numbers_are_no_amounts_and_a_key_is_used_once(quick_site: Site) -> None:
    account = await _account(quick_site.local)
    path = f"/api/v1/accounts/{account}/credits"

    is_problem(await quick_site.local.post(path, json={"amount": 5, "key": "k"}), 422)
    await _credit(quick_site, account, "1.00")
    is_problem(await _credit(quick_site, account, "2.00"), 409, "credit_key_reused")
    is_problem(await _credit(quick_site, "acct_nowhere"), 404, "unknown_account")


@pytest.mark.req("GRAPH-05", error=True)
async def test_nobody_credits_itself_or_touches_the_money_of_others(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")
    viewer = await site.caller("ann", Role.VIEWER)
    account = await _account(ann)
    body = {"amount": "5.00", "key": "mine"}

    is_problem(await ann.post(f"/api/v1/accounts/{account}/credits", json=body), 403)
    is_problem(await viewer.post("/api/v1/accounts", json={"name": "more"}), 403)
    is_problem(await eve.post("/api/v1/accounts", json={"name": "hers", "owner": "ann"}), 422)
    is_problem(await eve.post("/api/v1/grants", json={"account_id": account, "scopes": ALL}), 422, "unknown_account")
    asked = {"scope": "account", "scope_id": account, "window": "day", "limit": "1.00"}
    is_problem(await eve.post("/api/v1/budgets", json=asked), 422, "unknown_account")
    mine = await _account(eve)
    is_problem(await eve.post("/api/v1/grants", json={"account_id": mine, "scopes": ALL, "user_id": "ann"}), 422)
    assert (await viewer.get(f"/api/v1/accounts/{account}")).json()["granted"] == "0.00"


async def test_a_post_under_a_key_is_executed_once(site: Site) -> None:
    ann = await site.caller("ann")
    keyed = {"Idempotency-Key": "k"}

    first = await ann.post("/api/v1/accounts", json={"name": "main"}, headers=keyed)
    again = await ann.post("/api/v1/accounts", json={"name": "main"}, headers=keyed)
    grant = {"account_id": first.json()["id"], "scopes": ALL}
    granted = [await ann.post("/api/v1/grants", json=grant, headers=keyed) for _ in range(2)]

    assert first.content == again.content
    assert granted[0].content == granted[1].content
    assert len((await ann.get("/api/v1/accounts")).json()["items"]) == 1
    assert len((await ann.get("/api/v1/grants")).json()["items"]) == 1


@pytest.mark.req("GRAPH-02")
async def test_a_grant_is_made_read_with_what_would_stop_and_revoked(site: Site) -> None:
    ann = await site.caller("ann")
    schedule = (await ann.post("/api/v1/schedules", json=_graph())).json()

    grant = (await ann.get(f"/api/v1/grants/{schedule['grant_id']}")).json()
    assert (grant["user_id"], grant["scopes"], grant["stops"]) == ("ann", ["graph:execute:python:news"], ["news"])
    assert (grant["revoked_at"], grant["last_used_at"]) == (None, None)
    await site.queue.grants.validate(grant["id"], graph_id="python:news")
    assert (await ann.get(f"/api/v1/grants/{grant['id']}")).json()["last_used_at"] is not None
    revoked = (await ann.delete(f"/api/v1/grants/{grant['id']}")).json()
    assert (revoked["revoked_at"] is None, revoked["stops"]) == (False, ["news"])
    assert (await ann.delete(f"/api/v1/grants/{grant['id']}")).json()["revoked_at"] == revoked["revoked_at"]
    bad = {"account_id": grant["account_id"], "scopes": ["everything"]}
    is_problem(await ann.post("/api/v1/grants", json=bad), 422)


@pytest.mark.req("GRAPH-06", error=True)
async def test_a_paid_model_on_an_empty_account_is_402_and_names_the_way_out(site: Site) -> None:
    ann = await site.caller("ann")

    problem = is_problem(await ann.post("/api/v1/schedules", json=_graph(model=PAID)), 402, "payment_required")

    (account,) = (await ann.get("/api/v1/accounts")).json()["items"]
    assert all(word in problem["detail"] for word in (account["id"], "0.00", "duly account credit"))
    is_problem(await ann.get("/api/v1/schedules/news"), 404)
    assert (await ann.post("/api/v1/schedules", json=_graph())).status_code == 201
    changed = {"input": _graph(model=PAID)["input"]}
    is_problem(await ann.patch("/api/v1/schedules/news", json=changed), 402, "payment_required")
    await _credit(site, account["id"])
    assert (await ann.patch("/api/v1/schedules/news", json=changed)).status_code == 200


@pytest.mark.req("GRAPH-02")
async def test_a_created_graph_schedule_is_replayed_and_repeated_with_one_grant(site: Site) -> None:
    ann = await site.caller("ann")
    keyed = {"Idempotency-Key": "k"}

    answers = [await ann.post("/api/v1/schedules", json=_graph(), headers=keyed) for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert len((await ann.get("/api/v1/grants")).json()["items"]) == 1
    wrong = _graph(grant_id="grant_nowhere") | {"id": "other"}
    problem = is_problem(await ann.post("/api/v1/schedules", json=wrong), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/input/grant_id"


@pytest.mark.req("OWN-03")
async def test_a_budget_is_set_changed_read_and_deleted(site: Site) -> None:
    ann = await site.caller("ann")
    await site.schedule(ann, id="hers")
    asked = {"scope": "schedule", "scope_id": "hers", "window": "month", "limit": "1.00", "timezone": "Europe/Berlin"}

    budget = (await ann.post("/api/v1/budgets", json=asked)).json()
    changed = (await ann.post("/api/v1/budgets", json={**asked, "limit": "2.50", "on_exceeded": "pause"})).json()

    assert (budget["limit"], budget["used"], budget["on_exceeded"]) == ("1.00", "0.00", "skip")
    assert (changed["id"], changed["limit"], changed["on_exceeded"]) == (budget["id"], "2.50", "pause")
    path = f"/api/v1/budgets/{budget['id']}"
    assert (await ann.get(path)).json() == changed == (await ann.get("/api/v1/budgets")).json()["items"][0]
    for wrong in ({"limit": "-1"}, {"limit": "NaN"}, {"window": "year"}, {"timezone": "Mars/Base"}, {"scope": "world"}):
        is_problem(await ann.post("/api/v1/budgets", json={**asked, **wrong}), 422)
    assert (await ann.delete(path)).status_code == 204
    is_problem(await ann.get(path), 404, "unknown_budget")


@pytest.mark.req("GRAPH-06", error=True)
async def test_of_a_hundred_runs_at_once_on_a_balance_for_one_exactly_one_passes(site: Site) -> None:
    """Over HTTP, as workers call it; whoever passes keeps its money until all others were told."""
    told = asyncio.Event()

    async def patient(_: Any) -> None:
        await told.wait()

    service = Service(site, patient)
    grant_id = await service.grant()
    await _credit(site, (await site.queue.grants.get(grant_id, owner=None)).account_id, "0.50")

    asked = [asyncio.create_task(service.ask(grant_id, key=f"k{n}", max_cost="0.50")) for n in range(100)]
    while sum(task.done() for task in asked) < 99:
        await asyncio.wait([task for task in asked if not task.done()], return_when=asyncio.FIRST_COMPLETED)
    told.set()

    outcomes = [answer.json()["error_code"] for answer in await asyncio.gather(*asked)]
    assert sorted(map(str, outcomes)) == ["None"] + ["insufficient_credit"] * 99
    assert len(service.calls) == 1


@pytest.mark.req("OWN-02")
async def test_a_run_says_why_and_under_which_grant(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")
    schedule = (await ann.post("/api/v1/schedules", json=_graph())).json()
    run = (await ann.post("/api/v1/schedules/news/trigger")).json()["id"]

    why = (await ann.get(f"/api/v1/runs/{run}/why")).json()

    assert (why["answer"], why["schedule_id"]) == ("waiting", "news")
    assert any(schedule["grant_id"] in sentence for sentence in why["sentences"])
    is_problem(await eve.get(f"/api/v1/runs/{run}/why"), 404, "unknown_run")
