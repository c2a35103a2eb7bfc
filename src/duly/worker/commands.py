"""Programs as handlers: no shell, the params on standard input, what they print as log lines."""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from duly.domain.errors import InvalidInput
from duly.domain.instants import Micros
from duly.domain.jobs import Ending, JobStatus
from duly.domain.logs import LogLevel
from duly.domain.payloads import LARGEST_BYTES, payload_of
from duly.domain.sessions import ClaimedJob
from duly.domain.templates import command_of
from duly.worker.artifacts import keep_artifacts
from duly.worker.context import JobContext
from duly.worker.handlers import Handler, failure
from duly.worker.job_log import JobLog, Lines
from duly.worker.logbook import open_log
from duly.worker.processes import KILL_AFTER, Group, exit_text

_LONGEST_COMPLAINT = 500


def command(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    result: Literal["json"] | None = None,
    artifacts: str | Path | None = None,
    kill_after: Micros = KILL_AFTER,
) -> Handler:
    """Runs a program; exit code 0 is success.

    `env` is added to the worker's own, without what is set there for Duly. With `result="json"` the last line of its
    output is a JSON object, and the job's result. With `artifacts`, the files it writes into $DULY_ARTIFACTS are kept
    in a folder of the job's own below that one.
    """
    if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
        raise InvalidInput("argv", "is no list of words", fix="name the program and each argument: there is no shell")
    run = _Command(
        tuple(argv), env or {}, cwd, result == "json", None if artifacts is None else Path(artifacts), kill_after
    )
    return run.handle


def commands(*, artifacts: str | Path | None = None, kill_after: Micros = KILL_AFTER) -> Handler:
    """Runs the programs that jobs themselves name, as templates of commands make them (`duly.command`).

    A worker that has this handler runs whatever those who may define templates say; none has it unless told so.
    """
    folder = None if artifacts is None else Path(artifacts)

    async def handle(job: ClaimedJob) -> object:
        named, params = command_of(job.payload)
        run = _Command(named.argv, named.env, named.cwd, named.result is not None, folder, kill_after)
        return await run.handle(job._replace(payload=params))

    return handle


@dataclass(frozen=True, slots=True)
class _Command:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | Path | None
    answers_json: bool
    artifacts: Path | None
    kill_after: Micros

    async def handle(self, job: ClaimedJob) -> object:
        with open_log(job) as log:
            env = self._environment(JobContext(job, log, lambda: False))
            if self.artifacts is None:
                return await self._run(job, log, env)
            with _temporary_folder(self.artifacts) as folder:
                ending = await self._run(job, log, env | {"DULY_ARTIFACTS": str(folder)})
                await _keep(folder, self.artifacts / job.id, log)
                return ending

    async def _run(self, job: ClaimedJob, log: JobLog, env: Mapping[str, str]) -> Ending:
        out = _Last(Lines(partial(log.say, LogLevel.STDOUT)), LARGEST_BYTES if self.answers_json else 0)
        err = _Last(Lines(partial(log.say, LogLevel.STDERR)), _LONGEST_COMPLAINT)
        group = Group.start(self.argv, stdin=job.payload.encode(), env=env, out=out, err=err, cwd=self.cwd)
        code = await group.ended(kill_after=self.kill_after)
        if code:
            said = ": ".join(filter(None, [exit_text(code), err.line.decode("utf-8", "replace")]))
            return Ending(status=JobStatus.FAILED, error=failure(said).error, exit_code=code)
        return _result_from(out.line) if self.answers_json else Ending(status=JobStatus.COMPLETED, exit_code=0)

    def _environment(self, context: JobContext) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
        slot = context.slot
        return {
            **inherited,
            **self.env,
            "DULY_JOB_ID": context.job_id,
            "DULY_ATTEMPT": str(context.attempt),
            "DULY_IDEMPOTENCY_KEY": context.idempotency_key,
            "DULY_SLOT": "" if slot is None else str(slot),
        }


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """On the disk where files will be kept, so that keeping them is renaming them."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent.absolute(), prefix=".", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


async def _keep(source: Path, target: Path, log: JobLog) -> None:
    sorting = await asyncio.to_thread(keep_artifacts, source, target)
    for kept in sorting.kept:
        log.artifact(kept.name, kept.size, kept.sha256)
    for reason in sorting.refused:
        log.say(LogLevel.WARNING, reason.encode())


def _result_from(line: bytes) -> Ending:
    try:
        value = json.loads(line)
        result = payload_of([] if value is None else value, field="result")  # null would pass for an empty object
    except (ValueError, RecursionError) as error:
        said = failure(f"its last line is no JSON object that can be kept: {error}").error
        return Ending(status=JobStatus.FAILED, error=said, exit_code=0, retryable=False)
    return Ending(status=JobStatus.COMPLETED, result=result, exit_code=0)


class _Last:
    """Hands a stream on, and remembers the last line of it, up to a length."""

    def __init__(self, lines: Lines, longest: int) -> None:
        self._lines = lines
        self._longest = longest
        self._end = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._lines.feed(chunk)
        if self._longest:
            self._end += chunk
            if len(self._end) > 2 * self._longest:
                del self._end[: -self._longest]

    def close(self) -> None:
        self._lines.close()

    @property
    def line(self) -> bytes:
        return bytes(self._end).rstrip().rpartition(b"\n")[2]
