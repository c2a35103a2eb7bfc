"""`duly why` of whatever id a person has."""

import json

import pytest

from tests.commands.conftest import Shell


@pytest.mark.req("OWN-02")
def test_why_explains_a_job_and_says_what_to_do(shell: Shell) -> None:
    job_id = json.loads(shell("job", "put", "brew", "--json").out)["id"]

    said = shell("why", job_id)
    answer = json.loads(shell("why", job_id, "--json").out)

    assert said.code == 0, said.err
    assert said.out.splitlines()[0].startswith(f"{job_id} is a job of kind 'brew' in the pool 'default', put at ")
    assert said.out.splitlines()[-1] == "Start a worker that has a handler for 'brew'."
    assert (answer["subject"], answer["answer"]) == ("job", "waiting")
    assert answer["sentences"] == said.out.splitlines()
