"""Templates over HTTP: defined, changed by who saw them last, and jobs put from them that stay as they are."""

import asyncio
import hashlib
from typing import Any

import pytest

from duly.domain.ids import JobId, Owner
from duly.domain.requests import Claimed, Request
from duly.domain.tokens import Role
from tests.http.site import Site, is_problem

URL = "/api/v1/templates"
SCHEMA = {"properties": {"to": {"type": "string"}}, "required": ["to"]}
GREET: dict[str, Any] = {"name": "greet", "kind": "greet", "pool": "wide", "params": {"to": "you"}, "schema": SCHEMA}


@pytest.mark.req("INV-005")
async def test_a_job_is_put_from_a_template_and_later_changes_do_not_reach_it(site: Site) -> None:
    ann = await site.caller("ann")
    made = await ann.post(URL, json=GREET)
    put = await ann.post(f"{URL}/greet/jobs", json={"params": {"to": "bob"}, "priority": 3})
    changed = await ann.patch(f"{URL}/greet", json={"kind": "shout", "params": {"to": "all"}})
    later = await ann.post(f"{URL}/greet/jobs")
    await ann.delete(f"{URL}/greet")

    assert (made.status_code, made.json()["version"], made.json()["schema"]) == (201, 1, SCHEMA)
    assert made.headers["location"] == f"{URL}/greet"
    assert (changed.json()["version"], changed.json()["kind"], changed.json()["pool"]) == (2, "shout", "wide")
    job = (await ann.get(f"/api/v1/jobs/{put.json()['id']}")).json()
    assert (job["kind"], job["input"], job["priority"], job["pool"]) == ("greet", {"to": "bob"}, 3, "wide")
    assert (later.json()["kind"], later.json()["input"]) == ("shout", {"to": "all"})
    is_problem(await ann.get(f"{URL}/greet"), 404, "unknown_template")
    done = asyncio.Event()
    async with site.working(greet=lambda job: done.set()):
        await done.wait()


@pytest.mark.req("INV-005", error=True)
@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"params": {"to": 7}}, "/params/to"),
        ({"priority": 99_999}, "/priority"),
        ({"run_at": "soon"}, "/run_at"),
        ({"lane": "schedule:a"}, "/lane"),
        ({"param": {}}, "/param"),
    ],
)
async def test_what_a_template_does_not_take_is_refused_with_its_place(
    quick_site: Site, fields: dict[str, Any], pointer: str
) -> None:
    await quick_site.local.post(URL, json=GREET)

    problem = is_problem(await quick_site.local.post(f"{URL}/greet/jobs", json=fields), 422)

    assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert (await quick_site.local.get("/api/v1/jobs")).json()["items"] == []


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"kind": None}, "/kind"),
        ({"kind": "duly.command"}, "/kind"),
        ({"schema": {"pattern": "x"}}, "/schema/pattern"),
        ({"webhook_url": "ftp://x"}, "/webhook_url"),
        ({"pool": "none"}, "/pool"),
        ({"resources": ["none"]}, "/resources"),
        ({"lane": "schedule:a"}, "/lane"),
        ({"retry": {"max_attempts": 0}}, "/retry/max_attempts"),
        ({"command": {"argv": ["a\0b"]}, "kind": None}, "/command/argv/0"),
        ({"command": {"argv": ["a"], "result": "yaml"}, "kind": None}, "/command/result"),
    ],
)
async def test_a_template_that_cannot_be_meant_is_refused_with_its_place(
    quick_site: Site, fields: dict[str, Any], pointer: str
) -> None:
    asked = {name: value for name, value in {**GREET, **fields}.items() if value is not None}

    problem = is_problem(await quick_site.local.post(URL, json=asked), 422)

    assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert (await quick_site.local.get(URL)).json()["items"] == []


async def test_a_change_builds_on_what_was_read(site: Site) -> None:
    first = await site.local.post(URL, json=GREET)
    changed = await site.local.patch(f"{URL}/greet", json={"priority": 1}, headers={"If-Match": first.headers["etag"]})

    assert changed.status_code == 200
    late = await site.local.patch(f"{URL}/greet", json={"priority": 2}, headers={"If-Match": first.headers["etag"]})
    is_problem(late, 412, "template_changed")
    gone = await site.local.delete(f"{URL}/greet", headers={"If-Match": first.headers["etag"]})
    is_problem(gone, 412, "template_changed")
    read = await site.local.get(f"{URL}/greet", headers={"If-None-Match": changed.headers["etag"]})
    assert read.status_code == 304
    is_problem(await site.local.post(URL, json=GREET), 409, "template_exists")


async def test_templates_are_listed_page_by_page(site: Site) -> None:
    for name in ("c", "a", "b"):
        await site.local.post(URL, json={**GREET, "name": name})

    first = (await site.local.get(URL, params={"limit": 2})).json()
    rest = (await site.local.get(URL, params={"limit": 2, "cursor": first["next_cursor"]})).json()

    assert [each["name"] for each in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None


async def test_programs_are_for_admins_to_name(site: Site) -> None:
    ann, admin = await site.caller("ann"), await site.caller("ann", Role.ADMIN)
    program = {"name": "list", "command": {"argv": ["ls"], "result": "json"}, "pool": "wide"}

    is_problem(await ann.post(URL, json=program), 403, "forbidden")
    made = await admin.post(URL, json=program)
    assert made.json()["command"] == {"argv": ["ls"], "env": {}, "cwd": None, "result": "json"}
    is_problem(await ann.patch(f"{URL}/list", json={"command": {"argv": ["rm"]}}), 403, "forbidden")
    kept = await ann.patch(f"{URL}/list", json={"priority": 4})
    assert (kept.status_code, kept.json()["command"]["argv"]) == (200, ["ls"])
    put = await ann.post(f"{URL}/list/jobs")
    assert (put.status_code, put.json()["kind"]) == (201, "duly.command")
    for url, body in (
        ("/api/v1/groups", {"members": [{"job": {"kind": "duly.command"}}]}),
        ("/api/v1/schedules", {"target": "duly.command", "every": "1h"}),
    ):
        is_problem(await ann.post(url, json=body), 422, "invalid_input")


async def test_a_key_that_is_anothers_is_neither_replaced_nor_shown(site: Site) -> None:
    ann, eve = await site.caller("ann"), await site.caller("eve")
    await ann.post(URL, json=GREET)
    await eve.post(URL, json={**GREET, "name": "eves"})
    hers = (await ann.post(f"{URL}/greet/jobs", json={"key": "k"})).json()

    refused = await eve.post(f"{URL}/eves/jobs", json={"key": "k", "params": {"to": "eve"}})

    is_problem(refused, 409, "key_of_another")
    assert hers["id"] not in refused.text
    assert (await ann.get(f"/api/v1/jobs/{hers['id']}")).json()["input"] == {"to": "you"}
    again = await ann.post(f"{URL}/greet/jobs", json={"key": "k", "params": {"to": "bob"}})
    assert (again.status_code, again.json()["id"], again.json()["input"]) == (200, hers["id"], {"to": "bob"})


async def test_under_an_idempotency_key_a_job_is_put_once(site: Site) -> None:
    await site.local.post(URL, json=GREET)
    key = {"Idempotency-Key": "k-1"}

    first = await site.local.post(f"{URL}/greet/jobs", headers=key)
    again = await site.local.post(f"{URL}/greet/jobs", headers=key)

    assert (first.status_code, again.content) == (201, first.content)
    assert len((await site.local.get("/api/v1/jobs")).json()["items"]) == 1


async def test_who_takes_over_a_cut_put_finds_its_job_whatever_became_of_the_template(site: Site) -> None:
    await site.local.post(URL, json=GREET)
    path = f"{URL}/greet/jobs"
    hashed = hashlib.sha256(f"POST {path}?\n[]\n".encode()).hexdigest()
    request = Request(owner=Owner("local"), route=f"admin POST {URL}/{{name}}/jobs", key="k-1", hash=hashed)
    claimed = await site.queue.requests.claim(request)
    assert isinstance(claimed, Claimed)
    drawn = JobId(f"job_{claimed.draw}")
    first = await site.queue.jobs.put_from("greet", owner="local", job_id=drawn)
    await site.local.delete(f"{URL}/greet")
    await site.queue.requests.abandon(request, claimed)

    answer = await site.local.post(path, headers={"Idempotency-Key": "k-1"})

    assert (answer.status_code, answer.json()["id"]) == (201, first.job_id)
    assert len((await site.local.get("/api/v1/jobs")).json()["items"]) == 1


@pytest.mark.req("INV-001")
async def test_params_change_while_nobody_has_the_job(site: Site) -> None:
    ann = await site.caller("ann")
    await ann.post(URL, json=GREET)
    job = (await ann.post(f"{URL}/greet/jobs")).json()

    edited = await ann.patch(f"/api/v1/jobs/{job['id']}", json={"params": {"to": "bob"}})

    assert (edited.status_code, edited.json()["input"]) == (200, {"to": "bob"})
    problem = is_problem(await ann.patch(f"/api/v1/jobs/{job['id']}", json={"params": {}}), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["/params/to"]


@pytest.mark.req("INV-001", error=True)
async def test_from_its_dispatch_on_a_jobs_params_are_fixed(site: Site) -> None:
    job = (await site.local.post("/api/v1/jobs", json={"kind": "wait", "pool": "wide"})).json()
    url = f"/api/v1/jobs/{job['id']}"
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(job: object) -> None:
        entered.set()
        await go.wait()

    async with site.working(wait=wait):
        await entered.wait()
        is_problem(await site.local.patch(url, json={"params": {"a": 1}}), 409, "job_locked")
        go.set()
        await site.job_ended(job["id"])
    is_problem(await site.local.patch(url, json={"params": {"a": 1}}), 409, "job_already_finished")
