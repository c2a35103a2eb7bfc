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


@pytest.mark.req("OWN-02")
def test_why_finds_groups_by_their_id(shell: Shell) -> None:
    made = shell("group", "create", '{"members": [{"job": {"kind": "brew"}}]}', "--json")
    group_id = json.loads(made.out)["id"]

    said = shell("why", group_id)

    assert said.out.splitlines()[1] == "It is RUNNING: 1 live."


@pytest.mark.req("OWN-02", error=True)
def test_why_says_that_there_is_nothing_of_that_id(shell: Shell) -> None:
    shell("pool", "set", "mail", "--slots", "1")

    said = shell("why", "grp_99")

    assert (said.code, said.out) == (3, "")
    assert "there is no schedule, run, job, group, execution or review 'grp_99'" in said.err
