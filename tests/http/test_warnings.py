"""What no worker that is running has a handler for is taken, with a word about it."""

import asyncio

from tests.http.site import Site


async def test_an_unknown_kind_is_taken_with_a_warning_until_a_worker_knows_it(site: Site) -> None:
    job = await site.local.post("/api/v1/jobs", json={"kind": "gret", "pool": "wide"})
    schedule = await site.schedule(id="a", target="gret", enabled=True)

    assert job.status_code == 201
    assert job.json()["warnings"] == ["no worker is running, so nothing runs 'gret' yet"]
    assert schedule["warnings"] == job.json()["warnings"]

    entered, go = asyncio.Event(), asyncio.Event()

    async def greet(job: object) -> None:
        entered.set()
        await go.wait()

    known = await site.local.post("/api/v1/jobs", json={"kind": "greet", "pool": "wide", "priority": 9})
    async with site.working(greet=greet):
        await entered.wait()
        patched = (await site.local.patch("/api/v1/schedules/a", json={"priority": 1})).json()
        assert patched["warnings"] == ["no worker that is running has a handler for 'gret'; did you mean 'greet'?"]
        listed = (await site.local.get("/api/v1/schedules")).json()["items"]
        assert listed[0]["warnings"] == patched["warnings"]
        paused = (await site.local.post("/api/v1/schedules/a/pause")).json()
        assert paused["warnings"] == []
        put = await site.local.post("/api/v1/jobs", json={"kind": "greet", "pool": "wide"})
        assert put.json()["warnings"] == []
        go.set()
        await site.job_ended(known.json()["id"])


async def test_a_schedule_of_a_template_is_made_over_http(site: Site) -> None:
    ann = await site.caller("ann")
    made = {"id": "a", "target": "template:greet", "every": "1h", "input": {"to": "bob"}}
    refused = await ann.post("/api/v1/schedules", json=made)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/target")
    await ann.post("/api/v1/templates", json={"name": "greet", "kind": "greet", "pool": "wide"})

    schedule = await ann.post("/api/v1/schedules", json=made)
    run = (await ann.post("/api/v1/schedules/a/trigger")).json()

    assert (schedule.status_code, schedule.json()["target"]) == (201, "template:greet")
    job = (await ann.get(f"/api/v1/jobs/{run['job_id']}")).json()
    assert (job["kind"], job["input"], job["pool"], job["run_id"]) == ("greet", {"to": "bob"}, "wide", run["id"])
    for said in ({"retry": {"max_attempts": 2}}, {"pool": "wide"}, {"priority": 2}):
        again = await ann.patch("/api/v1/schedules/a", json=said)
        assert (again.status_code, again.json()["errors"][0]["pointer"]) == (422, f"/{next(iter(said))}")
    plain = await ann.patch("/api/v1/schedules/a", json={"target": "greet", "pool": "wide"})
    assert (plain.status_code, plain.json()["pool"], plain.json()["retry"]["max_attempts"]) == (200, "wide", 3)
    back = await ann.patch("/api/v1/schedules/a", json={"target": "template:greet"})
    assert (back.status_code, back.json()["pool"], back.json()["input"]) == (200, "default", {"to": "bob"})
