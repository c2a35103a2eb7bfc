"""`duly run` and `duly job` on both stores: looked at, followed, cancelled."""

import json
from pathlib import Path
from typing import Any

import pytest

from duly.bootstrap import handler_for
from duly.domain.sessions import ClaimedJob
from duly.wire.jobs import Job
from duly.wire.runs import RunDetail
from duly.worker.context import JobContext
from tests.commands.at_work import working
from tests.commands.conftest import Said, Shell


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.fixture
def url(database_url: str, tmp_path: Path) -> str:
    return str(tmp_path / database_url) if database_url == "work.db" else database_url


@pytest.fixture
def run_id(shell: Shell) -> str:
    """Of a run that waits, because nobody works."""
    shell("schedule", "add", "digest", "--every", "1h", "--target", "talk")
    return str(done(shell("schedule", "trigger", "digest", "--json"))["id"])


def test_runs_are_listed_and_shown_with_their_attempts(shell: Shell, run_id: str) -> None:
    listed = done(shell("run", "list", "--schedule", "digest", "--status", "pending", "--json"))
    shown = done(shell("run", "show", run_id, "--json"))

    assert [run["id"] for run in listed["items"]] == [run_id]
    assert set(shown) == set(RunDetail.model_fields)
    assert [job["id"] for job in shown["attempts"]] == [shown["job_id"]]
    assert done(shell("run", "list", "--status", "error", "--json"))["items"] == []
    assert run_id in shell("run", "list").out
    assert "status         pending" in shell("run", "show", run_id).out


def test_a_run_that_failed_is_listed_with_the_first_line_of_its_error(shell: Shell, url: str) -> None:
    def talk() -> None:
        raise ValueError("no words\x1b[2J\nat all")

    shell("schedule", "add", "digest", "--every", "1h", "--target", "talk", "--retries", "0")
    with working(url, {"talk": handler_for(talk)}):
        failed = shell("schedule", "trigger", "digest", "--wait", "--json")
    log = shell("run", "log", json.loads(failed.out)["id"]).out

    assert failed.code == 1
    listed = shell("run", "list").out.splitlines()[1]
    assert listed.endswith("ValueError: no words\N{REPLACEMENT CHARACTER}[2J")
    assert "Traceback (most recent call last):" in log
    assert "in talk" in log


def test_a_run_that_waits_is_cancelled_and_only_once(shell: Shell, run_id: str) -> None:
    assert shell("run", "cancel", run_id, "--dry-run").code == 0
    cancelled = done(shell("run", "cancel", run_id, "--reason", "no longer needed", "--wait", "--json"))

    assert (cancelled["status"], cancelled["detail"] or cancelled["error"]) == ("cancelled", "no longer needed")
    assert shell("run", "cancel", run_id).code == 4


@pytest.mark.req("CRON-12")
def test_what_a_run_said_is_followed_until_it_has_ended(shell: Shell, run_id: str, url: str) -> None:
    def talk(context: JobContext) -> None:
        context.log("first")
        context.log("second")

    with working(url, {"talk": handler_for(talk)}):
        said = shell("run", "log", run_id, "--follow", "--json")

    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [(line["seq"], line["text"], line["attempt"]) for line in lines] == [(1, "first", 1), (2, "second", 1)]
    job_id = done(shell("run", "show", run_id, "--json"))["job_id"]
    texts = [line.split(maxsplit=2) for line in shell("job", "log", job_id, "--follow").out.splitlines()]
    assert [(level, text) for _, level, text in texts] == [("info", "first"), ("info", "second")]


def test_a_job_is_put_listed_shown_and_cancelled(shell: Shell) -> None:
    put = done(shell("job", "put", "greet", "--params", '{"name": "you"}', "--key", "k", "--priority", "3", "--json"))
    again = done(shell("job", "put", "greet", "--key", "k", "--params", '{"name": "me"}', "--json"))

    assert (put["outcome"], again["outcome"], again["id"]) == ("created", "replaced", put["id"])
    shown = done(shell("job", "show", put["id"], "--json"))
    assert set(shown) == set(Job.model_fields)
    assert (shown["input"], shown["state"], shown["status"]) == ({"name": "me"}, "ready", "QUEUED")
    assert [job["id"] for job in done(shell("job", "list", "--state", "ready", "--json"))["items"]] == [put["id"]]
    assert shell("job", "cancel", put["id"]).out == f"{put['id']} is cancelled\n"
    assert done(shell("job", "list", "--json"))["items"] == []
    assert done(shell("job", "list", "--status", "CANCELLED", "--json"))["items"][0]["id"] == put["id"]
    assert shell("job", "cancel", put["id"]).code == 4


def test_waiting_for_a_job_ends_with_its_last_attempt(shell: Shell, url: str) -> None:
    def stumble_once(job: ClaimedJob) -> object:
        if job.attempt == 1:
            raise RuntimeError("it fell")
        return None

    shell("db", "migrate")
    with working(url, {"greet": stumble_once}):
        fine = shell("job", "put", "greet", "--retries", "1", "--wait", "--timeout", "60s", "--json")
        failed = shell("job", "put", "greet", "--retries", "0", "--wait", "--json")

    assert (done(fine)["status"], done(fine)["attempt"]) == ("COMPLETED", 2)
    assert failed.code == 1
    assert json.loads(failed.out)["error"].endswith("it fell")


def test_a_dry_run_puts_nothing(shell: Shell) -> None:
    shell("db", "migrate")

    assert shell("job", "put", "greet", "--dry-run").code == 0
    assert shell("job", "put", "greet", "--pool", "nowhere", "--dry-run").code == 3
    assert done(shell("job", "list", "--json"))["items"] == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("run show run_x", 3),
        ("run log run_x", 3),
        ("run cancel run_x", 3),
        ("run list --schedule x", 3),
        ("run list --status lost", 2),
        ("job show job_x", 3),
        ("job log job_x --follow", 3),
        ("job cancel job_x", 3),
        ("job put Greet", 2),
        ("job put greet --pool nowhere", 3),
        ("job put greet --params 5", 2),
        ("job put greet --run-at soon", 2),
        ("job list --state gone", 2),
        ("job list --state ready --ended", 2),
    ],
)
def test_a_mistake_is_one_line_with_its_exit_code(shell: Shell, arguments: str, code: int) -> None:
    shell("db", "migrate")

    said = shell(*arguments.split())

    assert (said.code, said.out, said.err.count("\n")) == (code, "", 1), said.err
    assert said.err.startswith("duly: ")


def test_a_waiting_that_takes_too_long_is_a_time_out(shell: Shell, run_id: str) -> None:
    assert shell("run", "show", run_id, "--wait", "--timeout", "1ms").code == 6
    assert shell("job", "put", "greet", "--wait", "--timeout", "1ms").code == 6
