"""Functions in processes of their own: what they answer comes back, and nothing of them stays."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import COMPLETED, FinishedJob, JobStatus
from duly.domain.logs import LogLevel, LogLine, Progress
from duly.domain.payloads import value_of
from duly.worker.isolation import _Messages, isolated
from duly.worker.job_log import JobLog
from tests.adapters.worker import functions
from tests.adapters.worker.page import Page
from tests.adapters.worker.working import dies, ended, put, until, working

pytestmark = pytest.mark.store("sqlite")

FUNCTIONS = "tests.adapters.worker.functions"
PATIENCE = Micros(10 * SECOND)
SOON = Micros(SECOND // 2)


def run(function: str | Callable[..., object], **given: Any) -> tuple[FinishedJob, list[LogLine], Progress | None]:
    async def scenario() -> tuple[FinishedJob, list[LogLine], Progress | None]:
        async with working({"it": isolated(function, kill_after=SOON)}, patience=PATIENCE) as (queue, worker):
            job_id = await put(queue, "it", **given)
            job = await ended(queue, job_id)
            assert worker.lost == {}
            return job, await queue.logs.lines(job_id), await queue.logs.progress(job_id)

    return asyncio.run(scenario())


@pytest.mark.parametrize("function", [functions.add, f"{FUNCTIONS}:add"], ids=["function", "name"])
def test_a_function_runs_in_another_process_and_its_answer_comes_back(function: str | Callable[..., object]) -> None:
    job, lines, _ = run(function, params={"a": 2, "b": 3})

    assert job.status is JobStatus.COMPLETED, job.error
    result = value_of(job.result or "null")  # type: ignore[arg-type]
    assert result["sum"] == 5
    assert result["pid"] != os.getpid()
    assert {(line.level, line.text) for line in lines} == {("stdout", "adding"), ("stderr", "aloud")}


def test_an_async_function_runs_in_a_loop_of_its_own() -> None:
    job, _, _ = run(functions.add_later, params={"a": 2, "b": 3})

    assert job.result == "5"


def test_a_function_in_another_process_knows_its_run_and_says_how_it_goes() -> None:
    job, lines, progress = run(functions.tell)

    assert value_of(job.result or "null") == {  # type: ignore[arg-type]
        "job": job.id,
        "attempt": 1,
        "slot": "None",
        "key": job.id,
    }
    assert [(line.level, line.text) for line in lines[:2]] == [(LogLevel.WARNING, "one"), (LogLevel.WARNING, "two")]
    assert lines[2].text.startswith("xxx")
    assert lines[2].text.endswith("more bytes")
    assert [line.text for line in lines[3:]] == [""]
    assert progress is not None
    assert (progress.permille, progress.note) == (500, "half")


@pytest.mark.parametrize(
    ("how", "status", "error"),
    [
        ("raise", "FAILED", "ValueError: no"),
        ("exit", "FAILED", "SystemExit: 3"),
        ("leave", "FAILED", "its process exited with 3 without an answer"),
        ("crash", "FAILED", "its process was killed by SIGSEGV without an answer"),
        ("odd", "FAILED", "the handler's result cannot be kept: result: is a object, which JSON cannot say"),
        ("large", "FAILED", "the handler's result cannot be kept: result: is 1100002 bytes as JSON"),
        ("ending", "SKIPPED", "nothing new"),
    ],
)
def test_however_a_function_ends_its_run_says_so(how: str, status: str, error: str) -> None:
    job, _, _ = run(functions.fail, params={"how": how})

    assert job.status == status
    assert (job.error or "").startswith(error)
    assert job.exit_code == {"leave": 3, "crash": -11}.get(how)


def test_whatever_else_comes_through_the_channel_is_no_message() -> None:
    page = Page()
    messages = _Messages(JobLog(JobId("job"), page))

    messages.feed(b'{\n[1]\n{"say": 1}\n{"say": "?", "level": "loud"}\n{"permille": 2000, "note": ""}\n\xff\n')
    messages.feed(b"x" * 3_000_000)
    messages.feed(b'\n{"say": "ol')
    messages.feed(b'd", "level": "info"}\n{"ending": {"status": "COMPLETED"}}\n{"ending": {"status": "FAILED"}}\n')

    assert (page.texts, page.progress) == (["old"], [])
    assert messages.ending == COMPLETED


@pytest.mark.parametrize("ending", ['{"status": "DONE"}', '{"status": "COMPLETED", "result": 1}', "{}", '{"more": 1}'])
def test_an_answer_that_cannot_be_kept_fails_the_run(ending: str) -> None:
    messages = _Messages(JobLog(JobId("job"), Page()))

    messages.feed(b'{"ending": %s}\n' % ending.encode())

    assert messages.ending is not None
    assert messages.ending.status is JobStatus.FAILED


@pytest.mark.parametrize("target", [f"{FUNCTIONS}:nothing", "no.such.module:at_all"])
def test_a_function_that_cannot_be_found_fails_its_run(target: str) -> None:
    job, _, _ = run(target)

    assert job.status is JobStatus.FAILED
    assert "Error: " in (job.error or "")


@pytest.mark.parametrize("function", ["nothing", ":attribute", "module:", lambda: None])
def test_what_no_other_process_could_import_is_refused(function: str | Callable[..., object]) -> None:
    with pytest.raises(InvalidInput, match="function"):
        isolated(function)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (functions.wait, "cleaned up"),
        (functions.wait_async, "cleaned up True"),
        (functions.look, "saw it"),
        (functions.ignore, None),
        (functions.spin, None),
    ],
    ids=["interrupted", "async", "looks", "ignores", "spins in C"],
)
def test_a_function_whose_time_is_up_is_asked_to_stop_and_then_killed(
    tmp_path: Path, function: Callable[..., object], left: str | None
) -> None:
    path = tmp_path / "pid"

    job, _, _ = run(function, params={"path": str(path)}, timeout_ms=3_000)

    assert (job.status, job.error) == (JobStatus.FAILED, "timed out after 3000 ms")
    if left is None:
        assert dies(int(path.read_text()))
    else:
        assert path.read_text() == left


def test_a_function_that_is_cancelled_is_gone_when_its_run_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "pid"
        async with working({"it": isolated(functions.wait, kill_after=SOON)}, patience=PATIENCE) as (queue, _):
            job_id = await put(queue, "it", params={"path": str(path)})
            await until(lambda: path.exists() and path.read_text() != "")
            pid = int(path.read_text())

            await queue.jobs.cancel(job_id, reason="no longer wanted")

            job = await ended(queue, job_id)
            assert (job.status, job.error) == (JobStatus.CANCELLED, "no longer wanted")
            assert dies(pid)

    asyncio.run(scenario())


def test_children_that_a_function_forks_end_with_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"

    job, _, _ = run(functions.fork, params={"path": str(path)})

    assert job.result == '"the first"', job.error
    assert dies(int(path.read_text()))
