"""Groups over HTTP: made whole or not at all, followed, cancelled, and tried again where they failed."""

import asyncio
from typing import Any

import pytest

from tests.http.site import Site, is_problem

URL = "/api/v1/groups"


def _member(kind: str, **more: Any) -> dict[str, Any]:
    return {"job": {"kind": kind, "pool": "wide", "retry": {"max_attempts": 1}}, **more}


async def _ended(site: Site, group_id: str) -> dict[str, Any]:
    while True:
        group: dict[str, Any] = (await site.local.get(f"{URL}/{group_id}")).json()
        if group["status"] != "RUNNING":
            return group
        await asyncio.sleep(0.02)


def _no(job: object) -> None:
    raise ValueError("no")


@pytest.mark.req("INV-006")
@pytest.mark.req("DEC-012")
async def test_a_sequence_stops_where_it_fails_and_goes_on_when_it_is_tried_again(site: Site) -> None:
    ann = await site.caller("ann")
    made = await ann.post(
        URL, json={"mode": "sequential", "name": "nightly", "members": [_member("a"), _member("b"), _member("c")]}
    )
    assert made.status_code == 201, made.text
    group_id = made.json()["id"]
    assert made.headers["location"] == f"{URL}/{group_id}"
    assert made.json()["progress"] == _progress(pending=2, live=1)

    async with site.working(a=lambda job: None, b=_no, c=lambda job: None):
        ended = await _ended(site, group_id)
    assert (ended["status"], ended["progress"]) == ("PARTIAL", _progress(completed=1, failed=1, cancelled=1))
    members = (await ann.get(f"{URL}/{group_id}/members")).json()["items"]
    assert [each["state"] for each in members] == ["COMPLETED", "FAILED", "CANCELLED"]
    assert members[2]["reason"] == "predecessor failed"

    again = await ann.post(f"{URL}/{group_id}/retry")
    assert (again.status_code, again.json()["status"]) == (200, "RUNNING")
    async with site.working(b=lambda job: None, c=lambda job: None):
        ended = await _ended(site, group_id)
    assert (ended["status"], ended["progress"]) == ("COMPLETED", _progress(completed=3))
    is_problem(await ann.post(f"{URL}/{group_id}/retry"), 409, "group_already_ended")


def _progress(**counts: int) -> dict[str, int]:
    return {"pending": 0, "live": 0, "completed": 0, "failed": 0, "skipped": 0, "cancelled": 0, **counts}


async def test_a_group_of_templates_hands_results_on(site: Site) -> None:
    ann = await site.caller("ann")
    for name in ("count", "report"):
        await ann.post("/api/v1/templates", json={"name": name, "kind": name, "pool": "wide"})
    seen: list[str] = []
    members = [
        {"template": "count", "name": "count"},
        {"template": "report", "params": {"total": {"from": "count", "path": "result.sold"}}},
    ]
    group = (await ann.post(URL, json={"mode": "sequential", "members": members})).json()

    async with site.working(count=lambda job: {"sold": 3}, report=lambda job: seen.append(job.payload)):
        assert (await _ended(site, group["id"]))["status"] == "COMPLETED"

    assert seen == ['{"total":3}']


async def test_groups_are_listed_cancelled_and_read_page_by_page(site: Site) -> None:
    ann = await site.caller("ann")
    ids = [(await ann.post(URL, json={"members": [_member("a")] * 3})).json()["id"] for _ in range(3)]

    first = (await ann.get(URL, params={"limit": 2})).json()
    rest = (await ann.get(URL, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [each["id"] for each in first["items"] + rest["items"]] == ids[::-1]
    page = (await ann.get(f"{URL}/{ids[0]}/members", params={"limit": 2})).json()
    more = (await ann.get(f"{URL}/{ids[0]}/members", params={"limit": 2, "cursor": page["next_cursor"]})).json()
    assert [each["place"] for each in page["items"] + more["items"]] == [0, 1, 2]

    cancelled = (await ann.post(f"{URL}/{ids[0]}/cancel", json={"reason": "not needed"})).json()
    assert (cancelled["status"], cancelled["cancel_reason"]) == ("CANCELLED", "not needed")
    is_problem(await ann.post(f"{URL}/{ids[0]}/cancel"), 409, "group_already_ended")
    found = (await ann.get(URL, params={"status": "CANCELLED"})).json()["items"]
    assert [each["id"] for each in found] == [ids[0]]


@pytest.mark.req("INV-006", error=True)
@pytest.mark.req("DEC-012", error=True)
@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"members": []}, "/members"),
        ({"members": [_member("a"), {"template": "none"}]}, "/members/1/template"),
        ({"members": [_member("a"), {"job": {"kind": "No"}}]}, "/members/1/job/kind"),
        ({"members": [_member("a"), {}]}, "/members/1"),
        ({"members": [_member("a")], "mode": "random"}, "/mode"),
        ({"members": [_member("a")], "stop_on_failure": True}, "/stop_on_failure"),
        (
            {"members": [{"job": {"kind": "a", "params": {"x": {"from": 3, "path": "result"}}}}]},
            "/members/0/params/x/from",
        ),
    ],
)
async def test_a_group_that_cannot_be_meant_is_refused_and_nothing_is_written(
    quick_site: Site, fields: dict[str, Any], pointer: str
) -> None:
    answer = await quick_site.local.post(URL, json={"mode": "sequential", **fields} | _parallel(fields))

    assert [each["pointer"] for each in is_problem(answer, 422)["errors"]] == [pointer]
    assert (await quick_site.local.get(URL)).json()["items"] == []
    assert (await quick_site.local.get("/api/v1/jobs")).json()["items"] == []


def _parallel(fields: dict[str, Any]) -> dict[str, Any]:
    return {"mode": "parallel"} if "stop_on_failure" in fields else {}


async def test_under_an_idempotency_key_a_group_is_made_once(site: Site) -> None:
    key = {"Idempotency-Key": "k-1"}
    body = {"members": [_member("a")]}

    first = await site.local.post(URL, json=body, headers=key)
    again = await site.local.post(URL, json=body, headers=key)

    assert (first.status_code, again.content) == (201, first.content)
    assert len((await site.local.get(URL)).json()["items"]) == 1
