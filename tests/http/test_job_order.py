"""The queue's order over HTTP: what the list shows is what workers claim, however jobs were moved."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from duly.domain.ids import JobId, Owner, Token
from duly.domain.requests import Claimed, Request
from duly.domain.sessions import Wanted
from duly.domain.tokens import Role
from duly.http.cursors import cursor_of
from tests.http.site import POOL, Site, is_problem

JOBS = "/api/v1/jobs"
QUEUE = "/api/v1/pools/wide/queue"


async def _put(site: Site, count: int, **fields: Any) -> list[str]:
    answers = [await site.local.post(JOBS, json={"kind": "greet", "pool": "wide", **fields}) for _ in range(count)]
    return [answer.json()["id"] for answer in answers]


async def _listed(site: Site) -> list[str]:
    items = (await site.local.get(QUEUE)).json()["items"]
    assert [item["place"] for item in items] == list(range(1, len(items) + 1))
    return [item["id"] for item in items]


async def _claimed(site: Site, count: int) -> list[str]:
    """As a worker gets them, one claim after the other."""
    session = await site.queue.sessions.open(name="hand", capacity=count)
    found: list[str] = []
    for number in range(1, count + 1):
        claimed = await site.queue.sessions.exchange(session.id, token=Token(number), wanted={POOL: Wanted(1)})
        found += [job.id for job in claimed.started]
    return found


@pytest.mark.req("INV-004")
@pytest.mark.req("DEC-005")
async def test_what_the_list_shows_after_every_kind_of_move_is_what_is_claimed(site: Site) -> None:
    a, b, c, d, e = await _put(site, 5)

    async def moved(job: str, how: Mapping[str, Any]) -> list[str]:
        answer = await site.local.post(f"{JOBS}/{job}/move", json=how)
        assert answer.status_code == 200, answer.text
        return await _listed(site)

    assert await _listed(site) == [a, b, c, d, e]
    assert await moved(e, {"before": b}) == [a, e, b, c, d]
    assert await moved(a, {"after": c}) == [e, b, c, a, d]
    assert await moved(b, {"swap": d}) == [e, d, c, a, b]
    assert await moved(b, {"next": True}) == [b, e, d, c, a]
    assert await moved(b, {"place": 3}) == [e, d, b, c, a]
    assert await moved(e, {"place": 99}) == [d, b, c, a, e]
    assert await moved(a, {"priority": 5}) == [a, d, b, c, e]
    assert await moved(d, {"place": 1}) == [d, a, b, c, e]
    arranged = await site.local.post(f"{JOBS}/reorder", json={"jobs": [e, b, d]})
    assert [(each["place"], each["id"]) for each in arranged.json()["items"]] == [(1, e), (2, b), (3, d)]
    final = await _listed(site)
    assert final == [e, b, d, a, c]

    assert await _claimed(site, 5) == final


@pytest.mark.req("DEC-005")
async def test_many_are_put_in_order_where_no_number_is_left_between_neighbours(site: Site) -> None:
    ids = await _put(site, 60)

    answer = await site.local.post(f"{JOBS}/reorder", json={"jobs": ids[::-1]})

    assert answer.status_code == 200, answer.text
    assert (await site.local.get(QUEUE, params={"limit": 200})).json()["items"] == answer.json()["items"]
    assert [each["id"] for each in answer.json()["items"]] == ids[::-1]


async def test_the_list_is_read_page_by_page(site: Site) -> None:
    ids = await _put(site, 5)

    first = (await site.local.get(QUEUE, params={"limit": 3})).json()
    rest = (await site.local.get(QUEUE, params={"limit": 3, "cursor": first["next_cursor"]})).json()

    assert [each["id"] for each in first["items"] + rest["items"]] == ids
    assert [each["place"] for each in rest["items"]] == [4, 5]
    for odd in ("9223372036854775808,0,0,job", "0,0,0,a\0b", "0,0,0,\ud800", "0,0,0", "0,0,x,job"):
        cursor = cursor_of("queue", odd)
        is_problem(await site.local.get(QUEUE, params={"cursor": cursor}), 422, "invalid_cursor")
    is_problem(await site.local.get(QUEUE, params={"cursor": "x"}), 422, "invalid_cursor")
    is_problem(await site.local.get("/api/v1/pools/none/queue"), 404, "unknown_pool")


@pytest.mark.req("INV-004", error=True)
@pytest.mark.req("DEC-005", error=True)
async def test_what_names_no_place_is_refused_and_changes_nothing(site: Site) -> None:
    a, b = await _put(site, 2)
    (apart,) = await _put(site, 1, pool="default")

    for how in ({}, {"next": False}, {"before": b, "place": 1}, {"place": 0}, {"between": [a, b]}):
        is_problem(await site.local.post(f"{JOBS}/{a}/move", json=how), 422, "invalid_input")
    is_problem(await site.local.post(f"{JOBS}/{a}/move", json={"before": apart}), 409, "jobs_apart")
    is_problem(await site.local.post(f"{JOBS}/{a}/move", json={"after": "job_none"}), 404, "unknown_job")
    is_problem(await site.local.post(f"{JOBS}/reorder", json={"jobs": [b, a, b]}), 422, "invalid_input")
    is_problem(await site.local.post(f"{JOBS}/reorder", json={"jobs": [b, a, apart]}), 409, "jobs_apart")
    assert await _listed(site) == [a, b]
    assert await _claimed(site, 1) == [a]
    is_problem(await site.local.post(f"{JOBS}/{a}/move", json={"place": 2}), 409, "job_locked")


async def test_a_swap_that_may_have_been_made_is_not_made_again(site: Site) -> None:
    a, b = await _put(site, 2)
    body = json.dumps({"swap": b}).encode()
    path = f"{JOBS}/{a}/move"
    hashed = hashlib.sha256(f"POST {path}?\n[]\n".encode() + body).hexdigest()
    request = Request(owner=Owner("local"), route=f"admin POST {JOBS}/{{id}}/move", key="k-1", hash=hashed)
    claimed = await site.queue.requests.claim(request)
    assert isinstance(claimed, Claimed)
    await site.queue.order.swap(JobId(a), JobId(b))
    await site.queue.requests.abandon(request, claimed)

    headers = {"Idempotency-Key": "k-1", "Content-Type": "application/json"}
    is_problem(await site.local.post(path, content=body, headers=headers), 409, "swap_uncertain")

    assert await _listed(site) == [b, a]


async def test_owners_see_and_move_their_own_among_everybodys(site: Site) -> None:
    ann, eve, admin = await site.caller("ann"), await site.caller("eve"), await site.caller("root", Role.ADMIN)
    for caller, name in ((ann, "anns"), (eve, "eves")):
        await caller.post("/api/v1/templates", json={"name": name, "kind": "greet", "pool": "wide"})
    first = (await eve.post("/api/v1/templates/eves/jobs")).json()["id"]
    hers = (await ann.post("/api/v1/templates/anns/jobs")).json()["id"]
    last = (await eve.post("/api/v1/templates/eves/jobs")).json()["id"]

    assert [(each["place"], each["id"]) for each in (await ann.get(QUEUE)).json()["items"]] == [(2, hers)]
    assert [each["place"] for each in (await eve.get(QUEUE)).json()["items"]] == [1, 3]
    is_problem(await ann.post(f"{JOBS}/{hers}/move", json={"before": first}), 404, "unknown_job")
    is_problem(await ann.post(f"{JOBS}/reorder", json={"jobs": [hers, first]}), 404, "unknown_job")
    assert (await eve.post(f"{JOBS}/{last}/move", json={"before": first})).status_code == 200
    assert [each["id"] for each in (await admin.get(QUEUE)).json()["items"]] == [last, first, hers]
