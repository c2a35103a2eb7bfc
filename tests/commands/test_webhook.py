"""`duly webhook` on both stores."""

import json
from typing import Any

from duly.wire.webhooks import CreatedWebhook, Delivery, DeliveryDetail, Webhook
from tests.commands.conftest import Said, Shell

URL = "https://example.com/hook"


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_secret_is_printed_once_and_never_listed(shell: Shell) -> None:
    said = shell("webhook", "add", URL, "--owner", "ann", "--event", "job.failed")

    assert said.code == 0, said.err
    assert said.out.startswith("whsec_")
    assert said.out.count("\n") == 1
    (hook,) = done(shell("webhook", "list", "--json"))["items"]
    assert set(hook) == set(Webhook.model_fields)
    assert (hook["owner"], hook["events"]) == ("ann", ["job.failed"])
    rotated = done(shell("webhook", "rotate", hook["id"], "--keep-old", "1h", "--json"))
    assert set(rotated) == set(CreatedWebhook.model_fields)
    shown = shell("webhook", "show", hook["id"]).out + shell("webhook", "list").out
    assert URL in shown
    assert "whsec_" not in shown


def test_a_webhook_is_tested_disabled_and_its_delivery_sent_again(shell: Shell) -> None:
    hook = done(shell("webhook", "add", URL, "--everything", "--json"))["id"]
    sent = done(shell("webhook", "test", hook, "--json"))

    assert set(sent) == set(Delivery.model_fields)
    assert done(shell("webhook", "disable", hook, "--json"))["enabled"] is False
    assert done(shell("webhook", "deliveries", "--state", "failed", "--json"))["items"][0]["id"] == sent["id"]
    assert shell("webhook", "resend", sent["id"]).code == 4
    assert done(shell("webhook", "enable", hook, "--json"))["enabled"] is True
    assert done(shell("webhook", "resend", sent["id"], "--json"))["state"] == "pending"
    assert set(done(shell("webhook", "delivery", sent["id"], "--json"))) == set(DeliveryDetail.model_fields)
    assert "not tried yet" in shell("webhook", "delivery", sent["id"]).err
    assert sent["id"] in shell("webhook", "deliveries", "--about", hook, "--most", "5").out
    assert shell("webhook", "delete", hook, "--dry-run").code == 0
    assert shell("webhook", "delete", hook, "--yes").code == 0
    assert done(shell("webhook", "list", "--json"))["items"] == []


def test_what_cannot_be_is_refused_and_nothing_is_made(shell: Shell) -> None:
    shell("db", "migrate")

    assert shell("webhook", "add", "http://example.com/").code == 2
    assert shell("webhook", "add", "https://10.0.0.1/", "--dry-run").code == 2
    assert shell("webhook", "add", URL, "--dry-run").code == 0
    assert shell("webhook", "show", "whe_none").code == 3
    assert "duly webhook list" in shell("webhook", "show", "whe_none").err
    assert shell("webhook", "list").err == "no webhooks; make one: duly webhook add URL\n"
