"""Schedules over HTTP, from the first POST to the tombstone."""

import asyncio
from typing import Any

import pytest

from tests.http.site import DAILY, Site, is_problem

URL = "/api/v1/schedules"


@pytest.mark.req("GRAPH-11")
async def test_a_schedule_is_created_read_changed_and_deleted(site: Site) -> None:
    created = await site.local.post(
        URL, json={**DAILY, "id": "digest", "input": {"to": "ann"}, "timezone": "Asia/Tokyo"}
    )

    assert created.status_code == 201
    assert created.headers["location"] == f"{URL}/digest"
    body = created.json()
    expected = {"id": "digest", "owner": "local", "target": "greet", "input": {"to": "ann"}, "cron": "0 9 * * *"}
    assert {name: body[name] for name in expected} == expected
    assert body["words"] == "At 09:00 every day, Asia/Tokyo"
    assert body["next_run_at"].endswith("T00:00:00Z")
    assert (body["enabled"], body["state"], body["revision"], body["last_run"]) == (True, "active", 1, None)
    assert (await site.local.get(f"{URL}/digest")).json() == body

    changed = await site.local.patch(f"{URL}/digest", json={"timezone": "Europe/Berlin", "priority": 7})
    assert changed.json()["cron"] == "0 9 * * *"
    assert (changed.json()["timezone"], changed.json()["priority"]) == ("Europe/Berlin", 7)
    assert changed.json()["input"] == {"to": "ann"}

    assert (await site.local.delete(f"{URL}/digest")).status_code == 204
    is_problem(await site.local.get(f"{URL}/digest"), 404, "unknown_schedule")
    states = [each["state"] for each in (await site.local.get(f"{URL}/digest/revisions")).json()["items"]]
    assert states == ["active", "active", "deleted"]


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"cron": "0 25 * * *"}, "invalid_cron", "/cron"),
        ({"timezone": "Mars/Olympus"}, "invalid_zone", "/timezone"),
        ({"cron": None, "every": "soon"}, "invalid_interval", "/every"),
        ({"every": "5m"}, "invalid_input", "/every"),
        ({"cron": None}, "invalid_input", "/cron"),
        ({"anchor": "2026-01-01T00:00:00Z"}, "invalid_input", "/anchor"),
        ({"pool": "nowhere"}, "unknown_pool", "/pool"),
        ({"target": "No Such Name"}, "invalid_input", "/target"),
        ({"retry": {"max_attempts": 0}}, "invalid_input", "/retry/max_attempts"),
        ({"overlap": "maybe"}, "invalid_input", "/overlap"),
        ({"priority": "7"}, "invalid_input", "/priority"),
        ({"id": "a/b"}, "invalid_input", "/id"),
        ({"id": "manual:x:news"}, "invalid_input", "/id"),
        ({"start_at": "2027-01-02T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}, "invalid_input", "/end_at"),
        ({"at": "2020-01-01T00:00:00Z", "cron": None}, "invalid_input", "/at"),
        ({"start_at": "2027-01-02T00:00:00"}, "invalid_input", "/start_at"),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_its_place(
    quick_site: Site, fields: dict[str, Any], code: str, pointer: str
) -> None:
    problem = is_problem(await quick_site.local.post(URL, json={**DAILY, **fields}), 422, code)

    assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert (await quick_site.local.get(URL)).json()["items"] == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tz": "UTC"}, "there is no field 'tz'; did you mean 'timezone'?"),
        ({"params": {}}, "there is no field 'params'; did you mean 'input'?"),
        ({"retry": {"max_atempts": 3}}, "there is no field 'max_atempts'; did you mean 'max_attempts'?"),
        ({"colour": "red"}, "there is no field 'colour'"),
        ({"timezone": "europe/berlin"}, "timezone: 'europe/berlin' is not a zone of the tz database"),
        ({"cron": None, "every": "soon"}, "every, position 0: 'soon' is not a duration"),
        ({"cron": None, "at": "2020-01-01T00:00:00Z"}, "at: has no fire left"),
        ({"target": "No Such"}, "target: "),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts: "),
    ],
)
async def test_what_is_refused_is_called_as_the_request_calls_it(
    quick_site: Site, fields: dict[str, Any], said: str
) -> None:
    (place,) = is_problem(await quick_site.local.post(URL, json={**DAILY, **fields}), 422)["errors"]

    assert place["detail"].startswith(said)


async def test_a_change_that_leaves_no_fire_names_what_it_changed(quick_site: Site) -> None:
    await quick_site.schedule(id="a")

    problem = is_problem(await quick_site.local.patch(f"{URL}/a", json={"end_at": "2020-01-01T00:00:00Z"}), 422)

    assert problem["errors"] == [{"pointer": "/end_at", "detail": "end_at: has no fire left (choose a later instant)"}]


async def test_an_id_that_is_taken_leaves_two_ways_on(quick_site: Site) -> None:
    await quick_site.schedule(id="a")

    problem = is_problem(await quick_site.local.post(URL, json={**DAILY, "id": "a"}), 409, "schedule_exists")

    assert problem["detail"] == "there is a schedule 'a' already; edit it, or choose another id"


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize("field", ["owner", "status", "state", "revision", "last_run_at", "tenant_id", "created_at"])
async def test_nobody_sets_what_is_not_theirs(quick_site: Site, field: str) -> None:
    await quick_site.schedule(id="a")

    for answer in (
        await quick_site.local.post(URL, json={**DAILY, field: "x"}),
        await quick_site.local.patch(f"{URL}/a", json={field: "x"}),
    ):
        assert is_problem(answer, 422, "invalid_input")["errors"][0]["pointer"] == f"/{field}"


async def test_enabled_pauses_and_resumes_in_the_revision_of_the_change(site: Site) -> None:
    await site.schedule(id="a", enabled=False)

    assert (await site.local.get(f"{URL}/a")).json()["next_run_at"] is None
    changed = (await site.local.patch(f"{URL}/a", json={"every": "15m", "enabled": True})).json()
    assert (changed["revision"], changed["state"], changed["every"], changed["cron"]) == (2, "active", "15m", None)
    paused = (await site.local.post(f"{URL}/a/pause")).json()
    assert (paused["enabled"], paused["next_run_at"]) == (False, None)
    assert (await site.local.post(f"{URL}/a/resume")).json()["enabled"] is True


async def test_a_patch_of_nothing_changes_nothing(quick_site: Site) -> None:
    created = await quick_site.schedule(id="a")

    assert (await quick_site.local.patch(f"{URL}/a", json={})).json() == created


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"every": "1h"}, {"every": "1h", "cron": None, "timezone": None}),
        ({"start_at": None}, {"start_at": None, "end_at": "2099-01-01T00:00:00Z"}),
        ({"timezone": None}, {"timezone": "UTC"}),
        ({"timeout_ms": 5}, {"timeout_ms": 5, "cron": "0 9 * * *"}),
        ({"retry": {"max_attempts": 4}}, {"retry": {"max_attempts": 4, "backoff_ms": 2000, "backoff_cap_ms": 3600000}}),
        ({"overlap": "allow"}, {"overlap": "allow", "catch_up": "none"}),
    ],
)
async def test_a_patch_changes_what_it_names(quick_site: Site, patch: dict[str, Any], expected: dict[str, Any]) -> None:
    bounds: dict[str, Any] = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2099-01-01T00:00:00Z"}
    before = await quick_site.schedule(id="a", timezone="Europe/Berlin", **bounds)

    after = (await quick_site.local.patch(f"{URL}/a", json=patch)).json()

    assert {name: after[name] for name in expected} == expected
    untouched = set(before) - set(expected) - {"words", "revision", "updated_at", "next_run_at", "fire_at"}
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}


async def test_the_etag_guards_a_change(site: Site) -> None:
    await site.schedule(id="a")
    tag = (await site.local.get(f"{URL}/a")).headers["etag"]

    assert (await site.local.get(f"{URL}/a", headers={"If-None-Match": tag})).status_code == 304
    first = await site.local.patch(f"{URL}/a", json={"priority": 1}, headers={"If-Match": tag})
    assert first.status_code == 200
    assert (await site.local.get(f"{URL}/a", headers={"If-None-Match": tag})).status_code == 200
    for late in (
        await site.local.patch(f"{URL}/a", json={"priority": 2}, headers={"If-Match": tag}),
        await site.local.post(f"{URL}/a/pause", headers={"If-Match": tag}),
        await site.local.post(f"{URL}/a/resume", headers={"If-Match": tag}),
        await site.local.delete(f"{URL}/a", headers={"If-Match": tag}),
    ):
        is_problem(late, 412, "schedule_changed")
    is_problem(await site.local.delete(f"{URL}/a", headers={"If-Match": "garbage"}), 422)
    assert (await site.local.delete(f"{URL}/a", headers={"If-Match": "*"})).status_code == 204


async def test_patches_at_once_all_count(site: Site) -> None:
    await site.schedule(id="a")
    patches: list[dict[str, Any]] = [{"priority": 3}, {"timeout_ms": 9}, {"jitter_ms": 4}]

    answers = await asyncio.gather(*(site.local.patch(f"{URL}/a", json=patch) for patch in patches))

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    after = (await site.local.get(f"{URL}/a")).json()
    assert (after["priority"], after["timeout_ms"], after["jitter_ms"]) == (3, 9, 4)


@pytest.mark.req("GRAPH-12")
async def test_the_list_shows_each_last_run(site: Site) -> None:
    await site.schedule(id="a")
    await site.schedule(id="b")

    async with site.working(greet=lambda job: None):
        run = (await site.local.post(f"{URL}/a/trigger")).json()
        await site.ended(run["id"])

    first, second = (await site.local.get(URL)).json()["items"]
    last = first["last_run"]
    assert (last["id"], last["status"], last["trace_id"]) == (run["id"], "success", None)
    assert last["scheduled_for"] == run["scheduled_for"]
    assert last["started_at"] <= last["completed_at"]
    assert first["last_run_at"] == run["scheduled_for"]
    assert second["last_run"] is None


@pytest.mark.req("GRAPH-12", error=True)
async def test_a_run_that_was_closed_is_nobodys_last_run(site: Site) -> None:
    await site.schedule(id="a")
    run = (await site.local.post(f"{URL}/a/trigger")).json()

    cancelled = await site.local.post(f"/api/v1/runs/{run['id']}/cancel", json={"reason": "not needed"})

    assert (cancelled.json()["status"], cancelled.json()["detail"]) == ("cancelled", "not needed")
    last = (await site.local.get(URL)).json()["items"][0]["last_run"]
    assert last is None
    is_problem(await site.local.post(f"/api/v1/runs/{run['id']}/cancel"), 409, "run_already_ended")


@pytest.mark.req("CRON-12")
async def test_next_fires_and_last_runs_can_be_asked_for(site: Site) -> None:
    await site.schedule(id="a", cron=None, every="1h")

    fires = (await site.local.get(f"{URL}/a/upcoming")).json()["items"]
    assert len(fires) == 5
    assert fires[0]["slot"] == (await site.local.get(f"{URL}/a")).json()["next_run_at"]
    assert all(fire["slot"] == fire["fire_at"] for fire in fires)
    triggered = [(await site.local.post(f"{URL}/a/trigger")).json()["id"] for _ in range(2)]
    runs = (await site.local.get(f"{URL}/a/runs")).json()["items"]
    assert [run["id"] for run in runs] == triggered[::-1]


@pytest.mark.req("OWN-02")
async def test_a_schedule_and_a_slot_say_why(site: Site) -> None:
    await site.schedule(id="a", enabled=False)

    assert (await site.local.get(f"{URL}/a/why")).json()["answer"] == "paused"
    slot = (await site.local.get(f"{URL}/a/why", params={"slot": "2026-01-01T09:00:00Z"})).json()
    assert (slot["slot"], slot["schedule_id"]) == ("2026-01-01T09:00:00Z", "a")
    assert slot["sentences"]


@pytest.mark.req("OWN-02", error=True)
async def test_no_slot_is_explained_that_none_can_be(quick_site: Site) -> None:
    await quick_site.schedule(id="a")

    for slot in ("soon", "2026-01-01T09:00:00", "2026-01-01T09:00:00.5Z"):
        is_problem(await quick_site.local.get(f"{URL}/a/why", params={"slot": slot}), 422)
    is_problem(await quick_site.local.get(f"{URL}/b/why"), 404, "unknown_schedule")


@pytest.mark.req("OWN-05")
async def test_a_backfill_runs_exactly_what_its_preview_shows(site: Site) -> None:
    await site.schedule(id="a")
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T23:00:00Z"}

    preview = (await site.local.post(f"{URL}/a/backfill/preview", json=span)).json()
    assert (await site.local.get(f"{URL}/a/runs")).json()["items"] == []
    backfilled = (await site.local.post(f"{URL}/a/backfill", json=span)).json()

    assert preview["slots"] == [f"2026-01-0{day}T09:00:00Z" for day in (1, 2, 3)]
    assert (preview["count"], preview["fits"]) == (3, True)
    assert [run["scheduled_for"] for run in backfilled["runs"]] == preview["slots"]


@pytest.mark.req("OWN-05", error=True)
async def test_a_backfill_beyond_its_cap_is_refused_and_its_preview_says_so(site: Site) -> None:
    await site.schedule(id="a")
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-31T23:00:00Z", "cap": 10}

    preview = (await site.local.post(f"{URL}/a/backfill/preview", json=span)).json()
    refused = is_problem(await site.local.post(f"{URL}/a/backfill", json=span), 422)

    assert (preview["count"], preview["fits"], len(preview["slots"])) == (31, False, 10)
    assert refused["errors"][0]["pointer"] == "/cap"
    assert (await site.local.get(f"{URL}/a/runs")).json()["items"] == []


async def test_a_preview_shows_words_fires_and_clock_changes_and_saves_nothing(quick_site: Site) -> None:
    asked = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "count": 3}

    preview = (await quick_site.local.post(f"{URL}/preview", json=asked)).json()

    assert preview["words"] == "At 02:30 every day, Europe/Berlin"
    assert [fire["local"][11:19] for fire in preview["fires"]] == ["02:30:00"] * 3
    assert sorted(note["kind"] for note in preview["clock_changes"]) == ["moved", "only_once"]
    assert (await quick_site.local.get(URL)).json()["items"] == []


async def test_withdraw_cancels_what_waits(site: Site) -> None:
    await site.schedule(id="a")
    run = (await site.local.post(f"{URL}/a/trigger")).json()

    await site.local.post(f"{URL}/a/pause", params={"withdraw": "true"})

    assert (await site.local.get(f"/api/v1/runs/{run['id']}")).json()["status"] == "cancelled"
    is_problem(await site.local.post(f"{URL}/a/pause", params={"withdraw": "perhaps"}), 422)
