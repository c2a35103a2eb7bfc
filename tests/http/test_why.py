"""Why, over HTTP: to whoever may read the thing, and to nobody else."""

import pytest

from tests.http.site import Site, is_problem

URL = "/api/v1/jobs"


@pytest.mark.req("OWN-02")
async def test_a_job_says_why_it_waits_in_facts_and_sentences(site: Site) -> None:
    job = (await site.local.post(URL, json={"kind": "greet", "pool": "wide"})).json()

    answer = (await site.local.get(f"{URL}/{job['id']}/why")).json()

    assert (answer["subject"], answer["id"], answer["answer"]) == ("job", job["id"], "waiting")
    assert answer["sentences"] == [fact["sentence"] for fact in answer["facts"]]
    assert [fact["fact"] for fact in answer["facts"]] == ["put", "place", "no_worker", "next"]
    assert answer["facts"][0]["about"] == [job["id"]]


@pytest.mark.req("OWN-02", error=True)
async def test_somebody_elses_job_does_not_exist(site: Site) -> None:
    job = (await site.local.post(URL, json={"kind": "greet", "pool": "wide"})).json()
    ann = await site.caller("ann")

    for asked in (job["id"], "job_99"):
        is_problem(await ann.get(f"{URL}/{asked}/why"), 404, "unknown_job")


@pytest.mark.req("OWN-02")
async def test_groups_and_runs_of_workflows_say_why(site: Site) -> None:
    members = [{"job": {"kind": "greet", "pool": "wide"}}]
    ann = await site.caller("ann")
    group = (await ann.post("/api/v1/groups", json={"members": members})).json()

    answer = (await ann.get(f"/api/v1/groups/{group['id']}/why")).json()

    assert (answer["subject"], answer["answer"]) == ("group", "running")
    assert [fact["fact"] for fact in answer["facts"]] == ["made", "progress", "live"]
    bob = await site.caller("bob")
    is_problem(await bob.get(f"/api/v1/groups/{group['id']}/why"), 404, "unknown_group")
    is_problem(await ann.get("/api/v1/workflows/news/runs/exe_99/why"), 404, "unknown_execution")
