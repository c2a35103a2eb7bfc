"""Reviews over HTTP: looked at by their owner, decided once, by people and by signed webhooks."""

import base64
import hashlib
import hmac
import json
from typing import Any

import httpx2
import pytest

from duly.domain.instants import SECOND
from duly.domain.tokens import Role
from duly.http.inbound import LARGEST_DELIVERY, Inbound
from tests.http.site import Site, is_problem, waiting_review

SECRET, PLANE = "a secret of more than 24 bytes", "plane's own secret"


@pytest.fixture
def signed_site(place: str) -> Site:
    return Site(place, Inbound(standard=SECRET, plane=PLANE))


@pytest.mark.req("GRAPH-29")
async def test_a_review_is_listed_read_and_decided(site: Site) -> None:
    ann, review = await site.caller("ann"), await waiting_review(site.queue)

    (listed,) = (await ann.get("/api/v1/reviews", params={"state": "open"})).json()["items"]
    assert listed == (await ann.get(f"/api/v1/reviews/{review.id}")).json()
    assert (listed["question"], listed["default"], listed["graph_id"]) == ({"publish": "news"}, "reject", "python:asks")

    answer = await ann.post(
        f"/api/v1/reviews/{review.id}/decision", json={"decision": "edit", "value": [1], "note": "so"}
    )

    assert answer.status_code == 200, answer.text
    decided = answer.json()
    assert (decided["state"], decided["value"], decided["note"], decided["decided_by"]) == ("edited", [1], "so", "ann")
    assert (await ann.get("/api/v1/reviews", params={"state": "open"})).json()["items"] == []


@pytest.mark.req("GRAPH-29", error=True)
async def test_the_second_decision_is_a_conflict_that_names_the_first_and_a_key_replays(site: Site) -> None:
    ann, review = await site.caller("ann"), await waiting_review(site.queue)
    url, key = f"/api/v1/reviews/{review.id}/decision", {"Idempotency-Key": "mine"}

    first = await ann.post(url, json={"decision": "approve"}, headers=key)
    again = await ann.post(url, json={"decision": "approve"}, headers=key)
    other = await ann.post(url, json={"decision": "reject"})

    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert "was approved by ann at" in is_problem(other, 409, "review_already_decided")["detail"]


@pytest.mark.req("GRAPH-29", error=True)
async def test_a_viewer_looks_and_does_not_decide(site: Site) -> None:
    viewer, review = await site.caller("ann", Role.VIEWER), await waiting_review(site.queue)

    assert (await viewer.get(f"/api/v1/reviews/{review.id}")).status_code == 200
    is_problem(await viewer.post(f"/api/v1/reviews/{review.id}/decision", json={"decision": "approve"}), 403)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"decision": "perhaps"}, "/decision"),
        ({"decision": "edit"}, "/value"),
        ({"decision": "approve", "value": 1}, "/value"),
        ({"decision": "approve", "note": "x" * 1_001}, "/note"),
        ({"decision": "edit", "value": "x" * 70_000}, "/value"),
        ({}, "/decision"),
    ],
)
async def test_a_decision_that_means_nothing_is_refused(quick_site: Site, body: dict[str, Any], pointer: str) -> None:
    review = await waiting_review(quick_site.queue)

    answer = await quick_site.local.post(f"/api/v1/reviews/{review.id}/decision", json=body)

    assert [each["pointer"] for each in is_problem(answer, 422, "invalid_input")["errors"]] == [pointer]
    assert (await quick_site.queue.reviews.get(review.id, owner=None)).is_open


async def test_pages_of_reviews_follow_each_other(site: Site) -> None:
    ann = await site.caller("ann")
    made = [(await waiting_review(site.queue, key=f"k{number}")).id for number in range(3)]

    first = (await ann.get("/api/v1/reviews", params={"limit": 2})).json()
    rest = (await ann.get("/api/v1/reviews", params={"limit": 2, "cursor": first["next_cursor"]})).json()

    assert [each["id"] for each in (*first["items"], *rest["items"])] == made[::-1]
    assert rest["next_cursor"] is None


# Inbound


def standard(site: Site, body: bytes, *, name: str = "msg_1", at: int | None = None, secret: str = SECRET) -> Any:
    """Headers as a sender of Standard Webhooks makes them."""
    stamp = str(site.queue.storage.clock.now() // SECOND if at is None else at)
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    digest = hmac.new(key, b".".join((name.encode(), stamp.encode(), body)), hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": f"v1,AAAA {signature}"}


def plane(body: bytes, *, delivery: str = "d1", secret: str = PLANE) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-plane-delivery": delivery, "x-plane-event": "issue", "x-plane-signature": signature}


async def send(site: Site, source: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
    return await site.stranger.post(f"/api/v1/inbound/{source}", content=body, headers=headers)


def item(review_id: str, **data: Any) -> bytes:
    actor = {"actor": {"id": "u1", "display_name": "Ann"}}
    return json.dumps(
        {"event": "issue", "action": "updated", "data": {"name": f"Publish? ({review_id})", **data}, "activity": actor}
    ).encode()


@pytest.mark.req("GRAPH-29")
async def test_a_signed_webhook_decides_and_a_delivery_that_comes_twice_does_so_once(signed_site: Site) -> None:
    review = await waiting_review(signed_site.queue)
    body = json.dumps({"review_id": review.id, "decision": "edit", "value": {"by": "ann"}}).encode()

    first = await send(signed_site, "standard", body, standard(signed_site, body))
    again = await send(signed_site, "standard", body, standard(signed_site, body))

    assert (first.status_code, first.json()) == (
        200,
        {"outcome": "decided", "review_id": review.id, "state": "edited"},
    )
    assert (again.status_code, again.json()) == (200, first.json())
    decided = await signed_site.queue.reviews.get(review.id, owner=None)
    assert (decided.decided_by, decided.value) == ("a webhook", '{"by":"ann"}')


async def test_another_delivery_about_the_same_review_is_told_what_stands(signed_site: Site) -> None:
    review = await waiting_review(signed_site.queue)
    body = json.dumps({"review_id": review.id, "decision": "approve"}).encode()
    no = json.dumps({"review_id": review.id, "decision": "reject"}).encode()
    await send(signed_site, "standard", body, standard(signed_site, body))

    late = await send(signed_site, "standard", no, standard(signed_site, no, name="msg_2"))

    assert late.json() == {"outcome": "already_decided", "review_id": review.id, "state": "approved"}


@pytest.mark.req("GRAPH-29", error=True)
@pytest.mark.parametrize("source", ["standard", "plane"])
async def test_one_delivery_decides_no_second_review(signed_site: Site, source: str) -> None:
    first = await waiting_review(signed_site.queue)
    second = await waiting_review(signed_site.queue, key="another")

    def about(review_id: str) -> tuple[bytes, dict[str, str]]:
        if source == "plane":
            body = item(review_id, state={"group": "completed"})
            return body, plane(body)
        body = json.dumps({"review_id": review_id, "decision": "approve"}).encode()
        return body, standard(signed_site, body)

    decided = await send(signed_site, source, *about(first.id))
    replayed = await send(signed_site, source, *about(second.id))
    again = await send(signed_site, source, *about(first.id))

    assert (decided.status_code, decided.json()["outcome"]) == (200, "decided")
    assert first.id in is_problem(replayed, 409, "delivery_replayed")["detail"]
    assert (again.status_code, again.json()) == (200, decided.json())
    assert (await signed_site.queue.reviews.get(second.id, owner=None)).is_open


@pytest.mark.req("GRAPH-29", error=True)
@pytest.mark.parametrize("wrong", ["secret", "body", "id", "missing", "stale", "ahead", "no number"])
async def test_what_is_not_signed_now_and_by_the_secret_is_refused(signed_site: Site, wrong: str) -> None:
    review = await waiting_review(signed_site.queue)
    body = json.dumps({"review_id": review.id, "decision": "approve"}).encode()
    now = signed_site.queue.storage.clock.now() // SECOND
    headers = {
        "secret": standard(signed_site, body, secret=SECRET[::-1]),
        "body": standard(signed_site, body + b" "),
        "id": standard(signed_site, body) | {"webhook-id": "msg_2"},
        "missing": {},
        "stale": standard(signed_site, body, at=now - 301),
        "ahead": standard(signed_site, body, at=now + 310),
        "no number": standard(signed_site, body) | {"webhook-timestamp": "soon"},
    }[wrong]

    answer = await send(signed_site, "standard", body, headers)

    is_problem(answer, 401, "stale_delivery" if wrong in ("stale", "ahead") else "bad_signature")
    assert (await signed_site.queue.reviews.get(review.id, owner=None)).is_open


async def test_a_secret_in_the_form_of_standard_webhooks_is_understood(place: str) -> None:
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
    site = Site(place, Inbound(standard=secret))
    await site.open()
    try:
        review = await waiting_review(site.queue)
        body = json.dumps({"review_id": review.id, "decision": "approve"}).encode()
        assert (await send(site, "standard", body, standard(site, body, secret=secret))).status_code == 200
    finally:
        await site.close()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_json"),
        (b'{"decision": "approve"}', 422, "invalid_input"),
        (b'{"review_id": "review_0", "decision": "approve"}', 404, "unknown_review"),
        (b" " * (LARGEST_DELIVERY + 1), 413, "body_too_large"),
    ],
)
async def test_a_signed_delivery_that_means_nothing_says_why(
    signed_site: Site, body: bytes, status: int, code: str
) -> None:
    is_problem(await send(signed_site, "standard", body, standard(signed_site, body)), status, code)


@pytest.mark.req("GRAPH-29")
@pytest.mark.parametrize(
    ("data", "state"),
    [
        ({"state": {"name": "Done", "group": "completed"}}, "approved"),
        ({"state": {"name": "Cancelled", "group": "cancelled"}}, "rejected"),
        ({"labels": [{"name": "Approved"}], "state": {"group": "started"}}, "approved"),
        ({"labels": [{"name": "duly:reject"}, {"name": "approved"}]}, "rejected"),
        ({"labels": [{"name": "rejected"}], "state": {"group": "completed"}}, "rejected"),
    ],
)
async def test_planes_states_and_labels_decide(signed_site: Site, data: dict[str, Any], state: str) -> None:
    review = await waiting_review(signed_site.queue)
    body = item(review.id, **data)

    for _ in range(2):
        answer = await send(signed_site, "plane", body, plane(body))
        assert (answer.status_code, answer.json()["state"]) == (200, state)

    assert (await signed_site.queue.reviews.get(review.id, owner=None)).decided_by == "plane: Ann"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"event": "issue", "data": null}',
        b'{"event": "project", "data": {"state": {"group": "completed"}}}',
        item("no review", state={"group": "completed"}),
        item("review_" + "0" * 32, state={"group": "completed"}),
        item("review_" + "0" * 32, state="5f", labels=["x", 5, None]),
    ],
)
async def test_what_plane_says_of_anything_else_is_taken_and_left(signed_site: Site, body: bytes) -> None:
    answer = await send(signed_site, "plane", body, plane(body))

    assert (answer.status_code, answer.json()["outcome"]) == (200, "ignored")


@pytest.mark.req("GRAPH-29", error=True)
async def test_a_forged_delivery_of_planes_is_refused(signed_site: Site) -> None:
    review = await waiting_review(signed_site.queue)
    body = item(review.id, state={"group": "completed"})

    for headers in (plane(body, secret=SECRET), plane(body, delivery=""), plane(b"another"), {}):
        is_problem(await send(signed_site, "plane", body, headers), 401, "bad_signature")
    assert (await signed_site.queue.reviews.get(review.id, owner=None)).is_open


async def test_a_source_without_a_secret_is_not_there(quick_site: Site) -> None:
    for source in ("standard", "plane", "elsewhere"):
        is_problem(await send(quick_site, source, b"{}", plane(b"{}", secret="")), 404, "unknown_source")
