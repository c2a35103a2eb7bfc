"""`duly template`, `duly group` and the rest of `duly job`: as a person, and as a script, on both stores."""

import json
from pathlib import Path
from typing import Any

import pytest

from duly.bootstrap import handler_for
from duly.wire.groups import GroupDetail
from duly.wire.templates import Template
from tests.commands.at_work import working
from tests.commands.conftest import Said, Shell


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.fixture
def url(database_url: str, tmp_path: Path) -> str:
    return str(tmp_path / database_url) if database_url == "work.db" else database_url


def _no() -> None:
    raise ValueError("no")


def _yes() -> dict[str, int]:
    return {"sold": 3}


def test_a_template_is_defined_changed_used_and_deleted(shell: Shell, url: str) -> None:
    schema = '{"properties": {"to": {"type": "string"}}, "required": ["to"]}'
    made = done(shell("template", "add", "mail", "--kind", "send", "--schema", schema, "--retries", "0", "--json"))
    assert set(made) == {"schema" if name == "params_schema" else name for name in Template.model_fields}
    assert (made["version"], made["retry"]["max_attempts"], made["owner"]) == (1, 1, "local")
    assert "send" in shell("template", "list").out

    refused = shell("template", "put", "mail")
    assert (refused.code, refused.err.startswith("duly: params")) == (2, True)
    dry = shell("template", "put", "mail", "--params", '{"to": "bob"}', "--dry-run")
    assert "would put send" in dry.err
    edited = shell("template", "edit", "mail", "--params", '{"to": "all"}', "--expect-version", "1")
    assert (edited.code, edited.out) == (0, "edited mail, version 2\n")
    assert shell("template", "edit", "mail", "--priority", "1", "--expect-version", "1").code == 4
    with working(url, {"send": handler_for(lambda to: to)}):
        put = done(shell("template", "put", "mail", "--wait", "--json"))
    assert (put["status"], put["result"]) == ("COMPLETED", "all")
    assert shell("template", "delete", "mail").code == 2
    assert shell("template", "delete", "mail", "--yes").code == 0
    gone = shell("template", "show", "mail")
    assert (gone.code, gone.err) == (3, "duly: there is no template 'mail'; see: duly template list\n")


def test_a_template_of_a_program_says_its_words(shell: Shell) -> None:
    made = done(shell("template", "add", "report", "--command", "make 'a b'", "--result", "json", "--json"))

    assert made["command"] == {"argv": ["make", "a b"], "env": {}, "cwd": None, "result": "json"}
    for wrong in (["--kind", "x", "--result", "json"], ["--command", "it's"], []):
        assert shell("template", "add", "other", *wrong).code == 2


def test_a_group_is_waited_for_with_its_progress_and_tried_again(shell: Shell, url: str) -> None:
    spec = {"members": [{"job": {"kind": "yes"}}, {"job": {"kind": "no", "retry": {"max_attempts": 1}}}]}
    wrong = shell("group", "add", '{"members": [{}]}')
    assert (wrong.code, "members[0]" in wrong.err) == (2, True)
    group_id = done(shell("group", "add", json.dumps(spec), "--sequential", "--json"))["id"]

    with working(url, {"yes": handler_for(_yes), "no": handler_for(_no)}):
        ended = shell("group", "show", group_id, "--wait")
    assert (ended.code, ended.out) == (1, f"{group_id} is PARTIAL\n")
    assert ended.err.splitlines()[-1] == "[########################] 2/2  COMPLETED 1, FAILED 1"
    assert "FAILED" in shell("group", "show", group_id).out
    dry = shell("group", "retry", group_id, "--dry-run")
    assert ("would try 1 members" in dry.err, dry.out.splitlines()[-1]) == (True, "It costs nothing.")
    assert done(shell("group", "retry", group_id, "--dry-run", "--cap", "1", "--json"))["fits"] is True

    with working(url, {"no": handler_for(_yes)}):
        again = done(shell("group", "retry", group_id, "--wait", "--json"))
    assert set(again) == set(GroupDetail.model_fields)
    assert (again["status"], again["progress"]["completed"]) == ("COMPLETED", 2)
    assert shell("group", "cancel", group_id).code == 4
    assert shell("group", "show", "none").code == 3
    listed = done(shell("group", "list", "--status", "COMPLETED", "--json"))
    assert [each["id"] for each in listed["items"]] == [group_id]


def test_jobs_are_moved_in_the_order_that_is_shown(shell: Shell) -> None:
    a, b, c = (done(shell("job", "put", "work", "--json"))["id"] for _ in range(3))

    def order() -> list[str]:
        return [each["id"] for each in done(shell("job", "queue", "--json"))["items"]]

    assert order() == [a, b, c]
    assert shell("job", "move", c, "--next").out.splitlines()[1].startswith("1")
    assert order() == [c, a, b]
    done(shell("job", "move", a, "--place", "3", "--json"))
    assert order() == [c, b, a]
    done(shell("job", "reorder", a, b, c, "--json"))
    assert order() == [a, b, c]
    assert "nothing was changed" in shell("job", "move", a, "--after", c, "--dry-run").err
    assert order() == [a, b, c]
    assert (shell("job", "move", a).code, shell("job", "move", "none", "--next").code) == (2, 3)


@pytest.mark.req("DEC-007")
@pytest.mark.req("OWN-05")
def test_what_failed_is_listed_previewed_and_tried_again(shell: Shell, url: str) -> None:
    with working(url, {"no": handler_for(_no)}):
        for _ in range(2):
            assert shell("job", "put", "no", "--retries", "0", "--wait").code == 1
    failed = [each["id"] for each in done(shell("job", "failed", "--kind", "no", "--json"))["items"]]
    assert len(failed) == 2

    preview = done(shell("job", "retry-failed", "--cap", "1", "--dry-run", "--json"))
    assert (preview["count"], preview["more"], preview["jobs"]) == (1, True, failed[:1])
    assert (preview["fits"], preview["cost"]["sentences"]) == (True, ["It costs nothing."])
    assert "It costs nothing." in shell("job", "retry-failed", "--cap", "1", "--dry-run").out
    assert shell("job", "retry-failed", "--cap", "1").code == 2
    put = done(shell("job", "retry-failed", "--cap", "1", "--yes", "--json"))
    assert (put["jobs"], len(put["retried"])) == (failed[:1], 1)
    with working(url, {"no": handler_for(_yes)}):
        assert done(shell("job", "retry", failed[1], "--wait", "--json"))["status"] == "COMPLETED"
    chain = done(shell("job", "chain", failed[1], "--json"))["items"]
    assert [each["status"] for each in chain] == ["FAILED", "COMPLETED"]
    assert shell("job", "retry", "none").code == 3


def test_params_are_edited_while_nobody_has_the_job(shell: Shell) -> None:
    job = done(shell("job", "put", "work", "--params", '{"a": 1}', "--json"))["id"]

    assert done(shell("job", "edit", job, "--params", '{"a": 2}', "--json"))["input"] == {"a": 2}
    assert shell("job", "edit", job, "--params", "[]").code == 2
    shell("job", "cancel", job)
    assert shell("job", "edit", job, "--params", "{}").code == 4


def test_what_no_worker_runs_is_taken_with_a_warning(shell: Shell) -> None:
    put = shell("job", "put", "wrok", "--json")
    added = shell("schedule", "add", "a", "--every", "1h", "--target", "wrok")

    assert (put.code, added.code) == (0, 0)
    for said in (put, added):
        assert "warning: no worker is running, so nothing runs 'wrok' yet\n" in said.err


def test_a_schedule_runs_a_template(shell: Shell) -> None:
    asked = ("schedule", "add", "a", "--every", "1h", "--target", "template:mail", "--input", '{"to": "bob"}')
    refused = shell(*asked)
    assert (refused.code, "no template 'mail'" in refused.err) == (2, True)
    shell("template", "add", "mail", "--kind", "send", "--priority", "4")
    assert shell(*asked, "--retries", "3").code == 2
    assert shell(*asked).code == 0

    run = done(shell("schedule", "trigger", "a", "--json"))

    job = done(shell("job", "show", run["job_id"], "--json"))
    assert (job["kind"], job["priority"], job["input"]) == ("send", 4, {"to": "bob"})
    assert shell("schedule", "edit", "a", "--target", "plain", "--pool", "default", "--yes").code == 0


def test_members_without_their_object_are_told_what_to_write(here: Shell) -> None:
    said = here("group", "add", '[{"template": "mail"}]')

    assert (said.code, said.out) == (2, "")
    assert """write '{"members": [{"template": "NAME"}]}'""" in said.err
