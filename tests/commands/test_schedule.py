"""`duly schedule` on both stores: what is shown before a change, what is changed, and what a script gets back."""

import json
from pathlib import Path
from typing import Any

import pytest

from duly.domain.sessions import ClaimedJob
from duly.wire.runs import Run
from duly.wire.schedules import Revision, Schedule
from tests.commands.at_work import working
from tests.commands.conftest import Said, Shell

ADD = ("schedule", "add", "digest", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--target", "digest")


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.fixture
def added(shell: Shell) -> Shell:
    assert shell(*ADD, "--input", '{"topic": "ai"}').code == 0
    return shell


@pytest.mark.req("CRON-12")
def test_adding_shows_words_fires_and_clock_changes_before_it_is_saved(shell: Shell) -> None:
    said = shell(*ADD, "--input", '{"topic": "ai"}', "--overlap", "queue", "--retries", "2", "--jitter", "250ms")

    assert said.code == 0, said.err
    words, *rest = said.out.splitlines()
    assert words == "At 02:30 every day, Europe/Berlin"
    assert sum(" 02:30:00 +0" in line for line in rest) == 5
    assert sum("the clock goes" in line for line in rest) == 2
    assert rest[-1] == "added digest, revision 1, active"
    saved = done(shell("schedule", "show", "digest", "--json"))
    assert set(saved) == set(Schedule.model_fields)
    assert (saved["cron"], saved["timezone"], saved["every"]) == ("30 2 * * *", "Europe/Berlin", None)
    assert (saved["target"], saved["input"], saved["owner"]) == ("digest", {"topic": "ai"}, "local")
    assert (saved["overlap"], saved["retry"]["max_attempts"], saved["jitter_ms"]) == ("queue", 3, 250)
    assert saved["enabled"] is True


@pytest.mark.req("DEC-007")
@pytest.mark.parametrize(("given", "attempts"), [((), 3), (("--retries", "0"), 1), (("--retries", "4"), 5)])
def test_a_schedule_tries_three_times_unless_told_otherwise(
    shell: Shell, given: tuple[str, ...], attempts: int
) -> None:
    shell(*ADD, *given)

    assert done(shell("schedule", "show", "digest", "--json"))["retry"]["max_attempts"] == attempts


@pytest.mark.store("sqlite")
def test_a_dry_run_saves_nothing_and_makes_no_database(here: Shell, tmp_path: Path) -> None:
    said = here(*ADD, "--dry-run")

    assert said.code == 0
    assert "nothing was changed" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.store("sqlite")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_a_person_is_asked_first(here: Shell, tmp_path: Path, answer: str, code: int) -> None:
    said = here(*ADD, answer=answer)

    assert said.code == code
    assert "add it? [y/N]" in said.err
    assert (tmp_path / "duly.db").exists() is (code == 0)


@pytest.mark.store("sqlite")
def test_a_person_who_said_yes_is_not_asked(here: Shell) -> None:
    said = here(*ADD, "--yes", answer="")

    assert said.code == 0
    assert "[y/N]" not in said.err


@pytest.mark.req("CRON-12", error=True)
def test_an_id_that_is_taken_is_a_conflict(added: Shell) -> None:
    said = added(*ADD)

    assert said.code == 4
    assert said.err.count("\n") == 1
    assert said.err.startswith("duly: there is a schedule 'digest' already")


@pytest.mark.req("CRON-12")
def test_lists_say_what_comes_next_and_what_ran_last(added: Shell) -> None:
    added("schedule", "add", "pulse", "--every", "15m", "--target", "beat")
    added("schedule", "trigger", "digest")

    listed = done(added("schedule", "list", "--json"))
    rows = added("schedule", "list").out.splitlines()

    assert [each["id"] for each in listed["items"]] == ["digest", "pulse"]
    assert listed["next_cursor"] is None
    assert listed["items"][0]["last_run"] is None, "it has not begun to run"
    assert rows[0].split() == ["ID", "STATE", "WHEN", "TARGET", "NEXT", "SLOT", "LAST", "RUN"]
    assert "Every 15 minutes" in rows[2]
    assert done(added("schedule", "list", "--most", "1", "--json"))["next_cursor"] == "digest"
    assert [each["id"] for each in done(added("schedule", "list", "--after", "digest", "--json"))["items"]] == ["pulse"]


@pytest.mark.req("CRON-12")
def test_the_next_slots_and_the_runs_can_be_asked_for(added: Shell) -> None:
    upcoming = done(added("schedule", "upcoming", "digest", "--most", "3", "--json"))["items"]
    run = done(added("schedule", "trigger", "digest", "--key", "once", "--json"))
    again = done(added("schedule", "trigger", "digest", "--key", "once", "--json"))
    runs = done(added("schedule", "runs", "digest", "--json"))["items"]

    assert len(upcoming) == 3
    assert all(set(fire) == {"slot", "fire_at"} for fire in upcoming)
    assert set(run) == set(Run.model_fields)
    assert run["id"] == again["id"]
    assert [each["id"] for each in runs] == [run["id"]]
    assert runs[0]["kind"] == "manual"


def test_an_edit_says_what_changes_and_leaves_the_rest(added: Shell) -> None:
    said = added("schedule", "edit", "digest", "--tz", "UTC", "--priority", "7")
    edited = done(added("schedule", "show", "digest", "--json"))

    assert said.code == 0, said.err
    assert "priority: 0 → 7" in said.err
    assert (edited["cron"], edited["timezone"], edited["priority"]) == ("30 2 * * *", "UTC", 7)
    assert edited["input"] == {"topic": "ai"}
    assert edited["revision"] == 2
    assert "is so already" in added("schedule", "edit", "digest", "--priority", "7").out


def test_bounds_are_kept_by_an_edit_of_something_else(shell: Shell) -> None:
    shell("schedule", "add", "b", "--every", "1h", "--end-at", "2099-01-01T00:00:00Z", "--target", "work")

    shell("schedule", "edit", "b", "--every", "2h")

    edited = done(shell("schedule", "show", "b", "--json"))
    assert (edited["every"], edited["end_at"]) == ("2h", "2099-01-01T00:00:00Z")


def test_a_dry_run_of_an_edit_changes_nothing(added: Shell) -> None:
    said = added("schedule", "edit", "digest", "--cron", "0 5 * * *", "--dry-run")

    assert "At 05:00 every day, Europe/Berlin" in said.out
    assert done(added("schedule", "show", "digest", "--json"))["revision"] == 1


def test_pausing_and_resuming_append_revisions(added: Shell) -> None:
    paused = done(added("schedule", "pause", "digest", "--json"))
    assert (paused["state"], paused["enabled"], paused["next_run_at"]) == ("paused", False, None)
    assert added("schedule", "resume", "digest").out == "resumed digest, revision 3, active\n"

    history = done(added("schedule", "history", "digest", "--json"))["items"]

    assert [each["state"] for each in history] == ["active", "paused", "active"]
    assert set(history[0]) == set(Revision.model_fields)


def test_a_change_of_what_somebody_else_changed_is_refused(added: Shell) -> None:
    added("schedule", "pause", "digest")

    for command in ("pause", "resume", "edit", "delete"):
        options = ["--yes"] if command == "delete" else ["--priority", "1"] if command == "edit" else []
        said = added("schedule", command, "digest", "--expect-revision", "1", *options)
        assert (said.code, said.out) == (4, ""), command


def test_nothing_is_deleted_unless_somebody_said_yes(added: Shell) -> None:
    refused = added("schedule", "delete", "digest")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert added("schedule", "delete", "digest", "--dry-run").code == 0
    assert added("schedule", "delete", "digest", answer="no\n").code == 1
    assert added("schedule", "show", "digest").code == 0

    assert added("schedule", "delete", "digest", "--yes").code == 0

    assert added("schedule", "show", "digest").code == 3
    assert [row.split()[2] for row in added("schedule", "history", "digest").out.splitlines()[1:]] == [
        "active",
        "deleted",
    ]


# Runs that no cadence planned


@pytest.mark.req("OWN-05")
def test_a_backfill_shows_what_it_would_run_and_then_runs_exactly_that(shell: Shell) -> None:
    shell("schedule", "add", "hourly", "--cron", "0 * * * *", "--target", "work")
    span = ("schedule", "backfill", "hourly", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T05:30:00Z")

    preview = done(shell(*span, "--dry-run", "--json"))
    assert (preview["count"], preview["fits"]) == (6, True)
    assert done(shell("schedule", "runs", "hourly", "--json"))["items"] == []
    started = shell(*span, "--yes", "--json", "--key", "spring")

    assert "6 fires, from 2026-03-01T00:00:00Z to 2026-03-01T05:00:00Z" in started.err
    runs = done(started)
    assert [run["scheduled_for"] for run in runs["runs"]] == preview["slots"]
    assert done(shell(*span, "--yes", "--json", "--key", "spring")) == runs


@pytest.mark.req("OWN-05", error=True)
def test_a_backfill_that_nobody_agreed_to_or_that_is_too_large_runs_nothing(shell: Shell) -> None:
    shell("schedule", "add", "hourly", "--cron", "0 * * * *", "--target", "work")
    span = ("schedule", "backfill", "hourly", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T05:30:00Z")

    unasked = shell(*span)
    assert (unasked.code, unasked.out) == (2, "")
    assert "6 fires, from 2026-03-01T00:00:00Z to 2026-03-01T05:00:00Z" in unasked.err
    assert shell(*span, answer="n\n").code == 1
    capped = shell(*span, "--cap", "5", "--yes")
    assert capped.code == 2
    assert "6 fires, from 2026-03-01T00:00:00Z to 2026-03-01T05:00:00Z; the cap is 5" in capped.err

    assert done(shell("schedule", "runs", "hourly", "--json"))["items"] == []


@pytest.mark.req("CRON-12")
def test_waiting_for_a_run_ends_as_the_run_does(added: Shell, database_url: str, tmp_path: Path) -> None:
    added("schedule", "add", "broken", "--every", "1h", "--target", "stumble", "--retries", "0")
    url = str(tmp_path / database_url) if database_url == "work.db" else database_url

    def stumble(_: ClaimedJob) -> object:
        raise RuntimeError("it fell")

    with working(url, {"digest": lambda _: None, "stumble": stumble}):
        fine = added("schedule", "trigger", "digest", "--wait", "--timeout", "60s", "--json")
        failed = added("schedule", "trigger", "broken", "--wait", "--json")

    last = {each["id"]: each["last_run"]["status"] for each in done(added("schedule", "list", "--json"))["items"]}
    assert last == {"digest": "success", "broken": "error"}
    assert done(fine)["status"] == "success"
    assert failed.code == 1
    assert json.loads(failed.out)["status"] == "error"
    assert "it fell" in json.loads(failed.out)["error"]


def test_waiting_no_longer_than_asked_is_a_time_out_and_not_a_failure(added: Shell) -> None:
    said = added("schedule", "trigger", "digest", "--wait", "--timeout", "1ms")

    assert (said.code, said.out) == (6, "")
    assert "it goes on" in said.err


# Mistakes


@pytest.mark.store("sqlite")
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ("add --target t", 2, "one of the arguments --cron --every --at"),
        ("add --target t --cron @daily --every 5m", 2, "not allowed with"),
        ("add --cron @daily", 2, "--target"),
        ("add --target t --cron nonsense", 2, "duly: "),
        ("add --target t --cron @daily --tz Mars/Olympus", 2, "tz"),
        ("add --target t --every 5m --tz UTC", 2, "--tz: is the zone of a cron expression"),
        ("add --target t --cron @daily --anchor 2026-01-01T00:00:00Z", 2, "--anchor"),
        ("add --target t --every never", 2, "interval"),
        ("add --target t --at 2020-01-01T00:00:00Z", 2, "has no fire left"),
        ("add --target t --at tomorrow", 2, "--at: 'tomorrow' is no instant"),
        ("add --target t --every 5m --start-at 2030-01-01", 2, "has no zone"),
        ("add --target Upper --every 5m", 2, "kind"),
        ("add --target t --every 5m --pool nowhere", 3, "pool"),
        ("add --target t --every 5m --input [1]", 2, "--input: is a JSON array"),
        ("add --target t --every 5m --input {", 2, "--input: is no JSON at line 1"),
        ("add --target t --every 5m --input @nowhere.json", 2, "--input: nowhere.json: No such file"),
        ("add --target t --every 5m --overlap never", 2, "--overlap"),
        ("add --target t --every 5m --priority high", 2, "--priority"),
        ("add --target t --every 5m --jitter 2d", 2, "jitter_ms"),
        ("add --target t --every 5m --time-limit soon", 2, "--time-limit"),
        (
            "add --target t --every 5m --pri 1",
            2,
            "no option --pri; did you mean --priority? (see: duly schedule add --help)",
        ),
        ("add --target t --every 5m --timezone UTC", 2, "no option --timezone; did you mean --tz?"),
        ("add x y --target t --every 5m", 2, "'y' is one too many"),
        ("lst", 2, "there is no command 'lst'; did you mean 'list'? (see: duly schedule --help)"),
        ("show nowhere", 3, "there is no database"),
        ("pause nowhere", 3, "there is no database"),
        ("", 2, "COMMAND"),
        ("fly", 2, "there is no command 'fly'"),
        ("list --most 0", 2, "--most"),
        ("trigger x --timeout 5s", 3, "there is no database"),
    ],
)
def test_a_mistake_is_one_line_with_its_exit_code(
    here: Shell, tmp_path: Path, arguments: str, code: int, complaint: str
) -> None:
    said = here("schedule", *arguments.split())

    assert (said.code, said.err.count("\n")) == (code, 1), said.err
    assert said.err.startswith("duly: ")
    assert complaint in said.err
    if code == 2:
        assert not (tmp_path / "duly.db").exists()


@pytest.mark.parametrize(
    "arguments",
    ["show x", "pause x", "resume x", "edit x --priority 1", "trigger x", "upcoming x", "runs x", "history x"],
)
def test_what_is_not_there_is_not_found(added: Shell, arguments: str) -> None:
    said = added("schedule", *arguments.split())

    assert (said.code, said.err) == (3, "duly: there is no schedule 'x'; see: duly schedule list\n")


def test_a_time_out_without_waiting_is_refused_before_anything_is_started(added: Shell) -> None:
    said = added("schedule", "trigger", "digest", "--timeout", "5s")

    assert said.code == 2
    assert "--wait" in said.err
    assert done(added("schedule", "runs", "digest", "--json"))["items"] == []


def test_input_comes_from_a_file_or_from_stdin(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"from": "a file"}')

    shell(*ADD, "--input", "@input.json")
    shell("schedule", "edit", "digest", "--input", "-", "--yes", answer='{"from": "stdin"}')

    history = done(shell("schedule", "history", "digest", "--json"))["items"]
    assert [each["input"] for each in history] == [{"from": "a file"}, {"from": "stdin"}]
