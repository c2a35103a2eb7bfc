"""Webhooks over HTTP: secrets shown once, others' unseen, addresses refused."""

from typing import Any

import pytest

from duly.domain.tokens import Role
from duly.wire.webhooks import CreatedWebhook, DeliveryDetail, Webhook
from tests.http.site import Site, is_problem

URL = "https://example.com/hook"
HOOKS = "/api/v1/webhooks"


@pytest.mark.req("DEC-009")
async def test_a_webhook_is_made_changed_tested_disabled_and_deleted(site: Site) -> None:
    ann = await site.caller("ann")
    made = await ann.post(HOOKS, json={"url": URL, "events": ["job.failed", "run.*"]})
    assert made.status_code == 201
    hook = made.json()
    path = made.headers["location"]
    assert set(hook) == set(CreatedWebhook.model_fields)
    assert (hook["owner"], hook["enabled"], hook["events"]) == ("ann", True, ["run.*", "job.failed"])
    assert hook["secret"].startswith("whsec_")

    rotated = (await ann.post(f"{path}/rotate", json={"keep_old_s": 60})).json()
    assert rotated["secret"] not in (None, hook["secret"])
    assert rotated["old_secret_until"] is not None
    changed = (await ann.patch(path, json={"events": ["*"], "note": "mine"})).json()
    assert set(changed) == set(Webhook.model_fields)
    assert (changed["events"], changed["note"]) == (["*"], "mine")

    sent = (await ann.post(f"{path}/test")).json()
    assert (sent["type"], sent["state"], sent["about"]) == ("webhook.test", "pending", hook["id"])
    assert (await ann.get("/api/v1/deliveries", params={"webhook_id": hook["id"]})).json()["items"] == [sent]
    assert (await ann.get("/api/v1/deliveries", params={"about": "job_1"})).json()["items"] == []

    disabled = (await ann.post(f"{path}/disable", json={"reason": "moving"})).json()
    assert (disabled["enabled"], disabled["disabled_reason"]) == (False, "moving")
    is_problem(await ann.post(f"{path}/test"), 409, "webhook_disabled")
    detail = (await ann.get(f"/api/v1/deliveries/{sent['id']}")).json()
    assert set(detail) == set(DeliveryDetail.model_fields)
    assert (detail["state"], detail["log"]) == ("failed", [])
    is_problem(await ann.post(f"/api/v1/deliveries/{sent['id']}/resend"), 409, "webhook_disabled")
    assert (await ann.post(f"{path}/enable")).json()["enabled"] is True
    assert (await ann.post(f"/api/v1/deliveries/{sent['id']}/resend")).json()["state"] == "pending"

    listed = await ann.get(HOOKS)
    assert [each["id"] for each in listed.json()["items"]] == [hook["id"]]
    assert (await ann.delete(path)).status_code == 204
    is_problem(await ann.get(path), 404, "unknown_webhook")
    for answer in (listed, await ann.get("/api/v1/deliveries")):
        assert "whsec_" not in answer.text


@pytest.mark.req("DEC-009")
async def test_what_a_key_replays_has_no_secret(site: Site) -> None:
    key = {"Idempotency-Key": "once"}
    first = await site.local.post(HOOKS, json={"url": URL}, headers=key)
    again = await site.local.post(HOOKS, json={"url": URL}, headers=key)

    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == {**first.json(), "secret": None}


@pytest.mark.req("DEC-009", error=True)
async def test_everything_is_for_admins(site: Site) -> None:
    ann, root = await site.caller("ann"), await site.caller("root", Role.ADMIN)

    is_problem(await ann.post(HOOKS, json={"url": URL, "everything": True}), 403)
    assert (await root.post(HOOKS, json={"url": URL, "everything": True})).json()["everything"] is True


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://example.com/"},
        {"url": "https://127.0.0.1/"},
        {"url": "https://user:pw@example.com/"},
        {"url": URL, "events": ["job.exploded"]},
        {"url": URL, "secret": "whsec_mine"},
        {"url": URL, "owner": "eve"},
    ],
)
@pytest.mark.req("DEC-009", error=True)
async def test_what_cannot_be_a_webhook_is_refused_with_its_field(quick_site: Site, body: dict[str, Any]) -> None:
    problem = is_problem(await quick_site.local.post(HOOKS, json=body), 422, "invalid_input")

    assert problem["errors"]
    assert (await quick_site.local.get(HOOKS)).json()["items"] == []
