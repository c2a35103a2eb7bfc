"""Grants that are no good at the doors themselves: expired, revoked, too narrow, and somebody else's."""

from typing import Any

import pytest

from duly.domain.instants import Instant, Micros
from tests.http.site import Site, is_problem
from tests.http.test_executions import Service, news


@pytest.mark.req("GRAPH-04", error=True)
async def test_a_grant_that_has_expired_executes_nothing(site: Site) -> None:
    service, clock = Service(site, news), site.queue.storage.clock
    soon = Instant(clock.now() + 500_000)
    account = await site.queue.accounts.create(owner="ann", name="main")
    grant = await site.queue.grants.create(
        owner="ann", account_id=account.id, scopes=["graph:execute:*"], expires_at=soon
    )
    while clock.now() <= soon:
        await clock.sleep(Micros(50_000))

    is_problem(await service.ask(grant.id), 403, "grant_expired")
    assert not service.calls


@pytest.mark.req("GRAPH-02", error=True)
async def test_nobody_schedules_reads_or_revokes_under_anothers_grant(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")
    account = (await ann.post("/api/v1/accounts", json={"name": "main"})).json()["id"]
    asked = {"account_id": account, "scopes": ["graph:execute:*"]}
    hers = (await ann.post("/api/v1/grants", json=asked)).json()["id"]
    narrow = (await ann.post("/api/v1/grants", json={**asked, "scopes": ["graph:execute:python:other"]})).json()["id"]
    revoked = (await ann.post("/api/v1/grants", json=asked)).json()["id"]
    await ann.delete(f"/api/v1/grants/{revoked}")

    def schedule(grant_id: str) -> dict[str, Any]:
        target = {"graph_id": "python:news", "input": {}, "grant_id": grant_id}
        return {"id": "news", "target": "graph.run", "input": target, "every": "1h", "pool": "wide"}

    theirs = is_problem(await eve.post("/api/v1/schedules", json=schedule(hers)), 422)
    assert theirs["errors"][0]["pointer"] == "/input/grant_id"
    is_problem(await ann.post("/api/v1/schedules", json=schedule(narrow)), 403, "grant_scope")
    is_problem(await ann.post("/api/v1/schedules", json=schedule(revoked)), 403, "grant_revoked")
    is_problem(await eve.post("/api/v1/grants", json=asked), 422, "unknown_account")
    is_problem(await eve.get(f"/api/v1/grants/{hers}"), 404, "unknown_grant")
    is_problem(await eve.delete(f"/api/v1/grants/{hers}"), 404, "unknown_grant")
    for caller in (ann, eve):
        assert (await caller.get("/api/v1/schedules")).json()["items"] == []
    assert (await ann.get(f"/api/v1/grants/{hers}")).json()["revoked_at"] is None
