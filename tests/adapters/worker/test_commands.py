"""Programs as handlers: what they are told, what is kept of what they say, and how they end."""

import asyncio
import hashlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobKey
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import FinishedJob, JobStatus
from duly.domain.logs import MOST_BYTES_PER_JOB, Artifact, LogLevel, LogLine
from duly.domain.sessions import ClaimedJob
from duly.domain.templates import Command, NewTemplate
from duly.worker import artifacts
from duly.worker.commands import command, commands
from tests.adapters.worker.working import POOL, claimed, dies, ended, put, working

pytestmark = pytest.mark.store("sqlite")

PATIENCE = Micros(10 * SECOND)
SOON = Micros(SECOND // 2)


class Outcome(NamedTuple):
    job: FinishedJob
    lines: list[LogLine]
    artifacts: list[Artifact]

    def said(self, level: LogLevel) -> list[str]:
        return [line.text for line in self.lines if line.level is level]


def run(*argv: str, given: dict[str, Any] | None = None, **how: Any) -> Outcome:
    async def scenario() -> Outcome:
        handler = command(argv, **({"kill_after": SOON} | how))
        async with working({"it": handler}, patience=PATIENCE) as (queue, worker):
            job_id = await put(queue, "it", **(given or {}))
            job = await ended(queue, job_id)
            assert worker.lost == {}
            lines: list[LogLine] = []
            while page := await queue.logs.lines(job_id, after=len(lines)):
                lines += page
            return Outcome(job, lines, await queue.logs.artifacts(job_id))

    return asyncio.run(scenario())


def sh(script: str, **how: Any) -> Outcome:
    return run("sh", "-c", script, **how)


def test_exit_code_zero_is_success_and_what_is_printed_is_kept() -> None:
    outcome = sh("echo one; echo two >&2; printf 'no end'")

    assert (outcome.job.status, outcome.job.exit_code, outcome.job.result) == (JobStatus.COMPLETED, 0, None)
    assert outcome.said(LogLevel.STDOUT) == ["one", "no end"]
    assert outcome.said(LogLevel.STDERR) == ["two"]


@pytest.mark.parametrize(
    ("script", "code", "error"),
    [
        ("echo why >&2; exit 3", 3, "exited with 3: why"),
        ("exit 4", 4, "exited with 4"),
        ("kill -9 $$", -9, "was killed by SIGKILL"),
        ("printf 'a\\000b\\377' >&2; exit 1", 1, "exited with 1: a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_any_other_exit_code_fails_the_run_and_is_recorded(script: str, code: int, error: str) -> None:
    job = sh(script).job

    assert (job.status, job.exit_code, job.error) == (JobStatus.FAILED, code, error)


def test_a_program_that_is_not_there_fails_the_run() -> None:
    job = run("/no/such/program").job

    assert job.status is JobStatus.FAILED
    assert "No such file or directory: '/no/such/program'" in (job.error or "")


def test_a_program_is_told_its_params_and_its_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://me:secret@db/duly")
    monkeypatch.setenv("MINE", "inherited")
    program = "import json, os, sys; print(json.dumps([json.load(sys.stdin), os.getcwd(), dict(os.environ)]))"

    outcome = run(
        sys.executable,
        "-c",
        program,
        env={"MORE": "added"},
        cwd=tmp_path,
        given={"params": {"to": "you"}, "key": JobKey("mine")},
    )

    params, folder, env = json.loads(outcome.said(LogLevel.STDOUT)[0])
    assert params == {"to": "you"}
    assert folder == str(tmp_path)
    assert (env["MINE"], env["MORE"]) == ("inherited", "added")
    assert {name: value for name, value in env.items() if name.startswith("DULY_")} == {
        "DULY_JOB_ID": outcome.job.id,
        "DULY_ATTEMPT": "1",
        "DULY_IDEMPOTENCY_KEY": "mine",
        "DULY_SLOT": "",
    }


def test_a_program_is_told_its_slot() -> None:
    async def scenario() -> None:
        job = claimed(key="news:2026-11-16T09:00:00Z", ledger_run="run")
        answer: Any = command(["sh", "-c", 'test "$DULY_SLOT" = 2026-11-16T09:00:00Z'])(job)
        assert (await answer).exit_code == 0

    asyncio.run(scenario())


def test_a_program_that_reads_nothing_does_not_hold_its_worker_up() -> None:
    assert run("true", given={"params": {"large": "x" * 1_000_000}}).job.exit_code == 0


@pytest.mark.parametrize("argv", ["echo hello", [], ["echo", 1]])
def test_a_command_that_is_no_list_of_words_is_refused(argv: Any) -> None:
    with pytest.raises(InvalidInput, match="no shell"):
        command(argv)


# What it answers.


def test_the_last_line_is_the_result_only_if_that_was_asked_for() -> None:
    assert sh("echo '{\"a\": 1}'").job.result is None
    assert sh("echo working; echo '{\"a\": 1}'; echo", result="json").job.result == '{"a":1}'
    assert sh("echo '{}'", result="json").job.result == "{}"


def test_a_result_may_be_longer_than_a_log_line() -> None:
    outcome = run(sys.executable, "-c", "print('{\"a\": \"' + 'x' * 900_000 + '\"}')", result="json")

    assert len(outcome.job.result or "") == 900_008, outcome.job.error
    assert outcome.said(LogLevel.STDOUT)[0].endswith("more bytes")


@pytest.mark.parametrize(
    "said",
    [
        ":",
        "echo nothing",
        "echo '[1]'",
        "echo null",
        "yes '[' | head -n 9 | tr -d '\\n'",
        'printf \'{"a": "\\\\ud800"}\'',
    ],
)
def test_a_last_line_that_is_no_object_fails_the_run_for_good(said: str) -> None:
    job = sh(f"{said}; exit 0", result="json").job

    assert (job.status, job.exit_code) == (JobStatus.FAILED, 0)
    assert (job.error or "").startswith("its last line is no JSON object")


# What it leaves running.


def test_a_program_whose_time_is_up_is_asked_to_stop() -> None:
    outcome = sh(
        "trap 'echo cleaning; exit 0' TERM; echo started; while :; do sleep 0.05; done", given={"timeout_ms": 600}
    )

    assert (outcome.job.status, outcome.job.error) == (JobStatus.FAILED, "timed out after 600 ms")
    assert outcome.said(LogLevel.STDOUT) == ["started", "cleaning"]


def test_a_program_that_ignores_that_is_killed_with_its_children() -> None:
    outcome = sh("trap '' TERM; sleep 600 & echo $!; while :; do sleep 0.05; done", given={"timeout_ms": 600})

    assert (outcome.job.status, outcome.job.error) == (JobStatus.FAILED, "timed out after 600 ms")
    (child,) = outcome.said(LogLevel.STDOUT)
    assert dies(int(child))


def test_what_a_program_leaves_in_the_background_ends_with_it() -> None:
    outcome = sh("sleep 600 & echo $!")

    assert outcome.job.status is JobStatus.COMPLETED
    (child,) = outcome.said(LogLevel.STDOUT)
    assert dies(int(child))


def test_whoever_leaves_the_group_with_the_output_does_not_keep_the_run() -> None:
    outcome = run("setsid", "--fork", "sh", "-c", "echo $$; exec sleep 20")

    assert outcome.job.status is JobStatus.COMPLETED


# How much it prints.


def test_of_endless_output_the_first_and_the_last_lines_are_kept() -> None:
    outcome = sh("echo first; yes | head -c 50000000; echo last")

    said = outcome.said(LogLevel.STDOUT)
    assert (said[0], said[-1]) == ("first", "last")
    (gap,) = outcome.said(LogLevel.WARNING)
    dropped = int(gap.split()[1].replace(",", ""))
    assert dropped + sum(len(text) + 1 for text in said) == 50_000_011
    assert sum(len(text) + 64 for text in said) <= MOST_BYTES_PER_JOB


def test_a_line_that_never_ends_is_cut() -> None:
    outcome = sh("head -c 20000000 /dev/zero")

    (line,) = outcome.said(LogLevel.STDOUT)
    assert line.endswith("more bytes")
    assert len(line) < 9_000


# What it leaves behind.


def test_files_that_a_program_leaves_are_kept_and_listed(tmp_path: Path) -> None:
    folder = tmp_path / "kept"

    outcome = sh('cd "$DULY_ARTIFACTS"; printf abc > a.txt; mkdir -p b; : > b/empty', artifacts=folder)

    assert outcome.job.status is JobStatus.COMPLETED, outcome.job.error
    job_id = outcome.job.id
    assert outcome.artifacts == [
        Artifact(job_id, "a.txt", 3, hashlib.sha256(b"abc").hexdigest()),
        Artifact(job_id, "b/empty", 0, hashlib.sha256(b"").hexdigest()),
    ]
    assert (folder / job_id / "a.txt").read_text() == "abc"
    assert [path.name for path in folder.iterdir()] == [job_id], "the temporary folder is gone"


def test_files_of_a_run_that_failed_are_kept_too(tmp_path: Path) -> None:
    outcome = sh('echo why > "$DULY_ARTIFACTS/report"; exit 1', artifacts=tmp_path)

    assert outcome.job.status is JobStatus.FAILED
    assert [artifact.name for artifact in outcome.artifacts] == ["report"]


def test_a_run_whose_time_is_up_leaves_no_files(tmp_path: Path) -> None:
    outcome = sh('echo half > "$DULY_ARTIFACTS/half"; exec sleep 60', artifacts=tmp_path, given={"timeout_ms": 500})

    assert outcome.artifacts == []
    assert list(tmp_path.iterdir()) == []


def test_links_and_what_exceeds_the_limits_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MOST_ARTIFACTS", 2)
    monkeypatch.setattr(artifacts, "MOST_BYTES", 10)
    script = """cd "$DULY_ARTIFACTS"; ln -s /etc/passwd a; ln -s /etc b; mkfifo c; head -c 11 /dev/zero > d
        printf 12345 > e; printf 123456 > f; printf 12345 > g; : > h"""

    outcome = sh(script, artifacts=tmp_path)

    assert outcome.job.status is JobStatus.COMPLETED, outcome.job.error
    assert [artifact.name for artifact in outcome.artifacts] == ["e", "g"]
    assert outcome.said(LogLevel.WARNING) == [
        "'a' is not kept: it is no file",
        "'c' is not kept: it is no file",
        "'d' is not kept: a job may leave 10 bytes",
        "'f' is not kept: a job may leave 10 bytes",
        "'h' is not kept: a job may leave 2 files",
    ]
    assert sorted(path.name for path in (tmp_path / outcome.job.id).iterdir()) == ["e", "g"]


def test_without_a_folder_for_them_there_are_no_artifacts() -> None:
    assert sh('test -z "$DULY_ARTIFACTS"').job.exit_code == 0


def test_a_job_of_a_templates_command_runs_the_program_it_names(tmp_path: Path) -> None:
    script = 'read given; echo "$given $WHO $PWD"'
    named = Command(argv=("sh", "-c", script), env={"WHO": "me"}, cwd=str(tmp_path))

    async def scenario() -> tuple[FinishedJob, list[LogLine]]:
        async with working({"duly.command": commands(kill_after=SOON)}, patience=PATIENCE) as (queue, _):
            await queue.templates.create(NewTemplate(name="say", command=named, pool=POOL), owner="ann")
            put = await queue.jobs.put_from("say", {"n": 1}, owner="ann")
            return await ended(queue, put.job_id), list(await queue.logs.lines(put.job_id))

    job, lines = asyncio.run(scenario())

    assert (job.status, job.exit_code) == (JobStatus.COMPLETED, 0)
    assert [line.text for line in lines] == [f'{{"n":1}} me {tmp_path}']


def test_a_job_that_names_no_command_fails_without_running_anything() -> None:
    nothing: dict[str, Any] = {"argv": [], "env": {}, "cwd": None}
    wrong: list[dict[str, Any]] = [{}, {"command": 3, "params": {}}, {"command": nothing, "params": {}}]
    for params in wrong:
        with pytest.raises(InvalidInput):
            asyncio.run(_handled(claimed(**params)))


async def _handled(job: ClaimedJob) -> object:
    answer = commands()(job)
    assert inspect.isawaitable(answer)
    return await answer
