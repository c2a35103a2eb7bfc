"""A request under a key is executed once, and answered alike however often it is sent."""

import asyncio
import hashlib

import pytest

from duly.domain.ids import Owner
from duly.domain.requests import Claimed, Request
from duly.domain.tokens import Role
from tests.http.site import DAILY, Site, is_problem

URL = "/api/v1/schedules"
KEY = {"Idempotency-Key": "k-1"}


async def test_a_replay_is_the_same_to_the_byte(site: Site) -> None:
    first = await site.local.post(URL, json=DAILY, headers=KEY)
    again = await site.local.post(URL, json=DAILY, headers=KEY)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    for name in ("content-type", "etag", "location"):
        assert again.headers[name] == first.headers[name]
    assert len((await site.local.get(URL)).json()["items"]) == 1


async def test_a_problem_is_replayed_too(site: Site) -> None:
    bad = {**DAILY, "cron": "0 25 * * *"}

    first = await site.local.post(URL, json=bad, headers=KEY)
    again = await site.local.post(URL, json=bad, headers=KEY)

    assert is_problem(first, 422)
    assert (again.status_code, again.content) == (422, first.content)
    assert again.headers["content-type"] == "application/problem+json"


async def test_another_request_under_the_key_is_refused(site: Site) -> None:
    await site.schedule(id="a")
    await site.schedule(id="b")
    await site.local.post(f"{URL}/a/pause", headers=KEY)

    is_problem(await site.local.post(f"{URL}/b/pause", headers=KEY), 422, "idempotency_key_reused")
    is_problem(await site.local.post(f"{URL}/a/pause?withdraw=true", headers=KEY), 422, "idempotency_key_reused")
    conditional = await site.local.post(f"{URL}/a/pause", headers={**KEY, "If-Match": '"1"'})
    is_problem(conditional, 422, "idempotency_key_reused")
    assert (await site.local.post(f"{URL}/a/resume", headers=KEY)).json()["enabled"] is True


async def test_twenty_at_once_are_one(site: Site) -> None:
    answers = await asyncio.gather(*(site.local.post(URL, json=DAILY, headers=KEY) for _ in range(20)))

    bodies = {answer.content for answer in answers if answer.status_code == 201}
    waiting = [answer for answer in answers if answer.status_code != 201]
    assert len(bodies) == 1
    for answer in waiting:
        is_problem(answer, 409, "request_in_progress")
        assert int(answer.headers["retry-after"]) >= 1
    assert len((await site.local.get(URL)).json()["items"]) == 1
    assert (await site.local.post(URL, json=DAILY, headers=KEY)).content in bodies


async def test_a_trigger_and_a_backfill_happen_once(site: Site) -> None:
    await site.schedule(id="a")
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T23:00:00Z"}

    for _ in range(3):
        assert (await site.local.post(f"{URL}/a/trigger", headers=KEY)).status_code == 201
        assert (await site.local.post(f"{URL}/a/backfill", json=span, headers=KEY)).status_code == 201

    assert len((await site.local.get(f"{URL}/a/runs")).json()["items"]) == 1 + 2


async def test_a_key_is_the_callers_own(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")

    hers = await ann.post(URL, json=DAILY, headers=KEY)
    other = await eve.post(URL, json=DAILY, headers=KEY)

    assert "idempotency-replayed" not in other.headers
    assert hers.json()["id"] != other.json()["id"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9"])
async def test_what_is_no_key_is_refused(quick_site: Site, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode())]

    is_problem(await quick_site.local.post(URL, json=DAILY, headers=headers), 422)
    assert (await quick_site.local.get(URL)).json()["items"] == []


async def test_a_token_is_replayed_without_its_secret(site: Site) -> None:
    asked = {"owner": "ann", "role": "viewer"}
    admin = await site.caller("root", Role.ADMIN)

    first = (await admin.post("/api/v1/tokens", json=asked, headers=KEY)).json()
    again = (await admin.post("/api/v1/tokens", json=asked, headers=KEY)).json()

    assert first["secret"].startswith("duly_")
    assert again == {**first, "secret": None}
    owners = [token["owner"] for token in (await site.local.get("/api/v1/tokens")).json()["items"]]
    assert sorted(owners) == ["ann", "root"]


async def test_what_one_role_was_answered_is_not_replayed_to_another(site: Site) -> None:
    await site.schedule(await site.caller("bob"), id="bobs", input={"word": "secret"})
    admin, operator = await site.caller("ann", Role.ADMIN), await site.caller("ann")

    answer = await admin.post(f"{URL}/bobs/pause", headers=KEY)
    assert (answer.status_code, "secret" in answer.text) == (200, True)

    is_problem(await operator.post(f"{URL}/bobs/pause", headers=KEY), 404, "unknown_schedule")


def _keyed(route: str, path: str, body: bytes) -> Request:
    asked = f"POST {path}?\n[]\n".encode() + body
    return Request(owner=Owner("local"), route=f"admin POST {route}", key="k-1", hash=hashlib.sha256(asked).hexdigest())


async def _cut(site: Site, path: str, route: str, body: bytes = b"") -> None:
    """Leaves what a server leaves that dies after the change and before it keeps the answer."""
    request = _keyed(route, path, body)
    claimed = await site.queue.requests.claim(request)
    assert isinstance(claimed, Claimed)
    await site.queue.requests.abandon(request, claimed)


async def test_who_takes_over_a_cut_request_finds_what_it_did(site: Site) -> None:
    body = b'{"target":"greet","every":"1h","pool":"wide"}'
    headers = {**KEY, "Content-Type": "application/json"}
    request = _keyed(URL, URL, body)
    claimed = await site.queue.requests.claim(request)
    assert isinstance(claimed, Claimed)
    await site.schedule(id=f"sch_{claimed.draw}", cron=None, every="1h")
    await site.queue.requests.abandon(request, claimed)

    answer = await site.local.post(URL, content=body, headers=headers)

    assert (answer.status_code, answer.json()["id"]) == (201, f"sch_{claimed.draw}")
    assert len((await site.local.get(URL)).json()["items"]) == 1


@pytest.mark.parametrize("owner", ["local", "eve"])
async def test_who_takes_over_a_cut_request_does_not_take_what_others_made(site: Site, owner: str) -> None:
    body = b'{"id":"a","target":"greet","every":"1h","pool":"wide"}'
    await _cut(site, URL, URL, body)
    maker = site.local if owner == "local" else await site.caller(owner)
    await site.schedule(maker, id="a", cron=None, every="2h" if owner == "local" else "1h")

    answer = await site.local.post(URL, content=body, headers={**KEY, "Content-Type": "application/json"})

    is_problem(answer, 409, "schedule_exists")


async def test_a_cut_cancellation_is_found_done(site: Site) -> None:
    await site.schedule(id="a")
    run = (await site.local.post(f"{URL}/a/trigger")).json()
    path = f"/api/v1/runs/{run['id']}/cancel"
    await _cut(site, path, "/api/v1/runs/{id}/cancel")
    await site.local.post(path)

    assert (await site.local.post(path, headers=KEY)).json()["status"] == "cancelled"
    is_problem(await site.local.post(path), 409, "run_already_ended")


async def test_a_failure_is_not_kept(quick_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("once")

    with monkeypatch.context() as broken:
        broken.setattr("duly.http.schedules.plans.cadence_of", fail)
        is_problem(await quick_site.local.post(URL, json=DAILY, headers=KEY), 500)

    assert (await quick_site.local.post(URL, json=DAILY, headers=KEY)).status_code == 201
