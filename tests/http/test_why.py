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
