"""Functions as handlers, each run in a fresh process that can be killed."""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from duly.domain.errors import InvalidInput
from duly.domain.instants import Micros
from duly.domain.jobs import Ending, JobStatus
from duly.domain.logs import LogLevel
from duly.domain.payloads import LARGEST_BYTES
from duly.domain.sessions import ClaimedJob
from duly.worker.calls import Call, Fitted
from duly.worker.handlers import Handler, failure
from duly.worker.job_log import JobLog, Lines
from duly.worker.logbook import open_log
from duly.worker.processes import KILL_AFTER, Group, exit_text

# The worker's own path, because whatever it can import the function may need.
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import duly.worker.isolated as it; it.main()"

# A result as JSON within JSON, where every quote takes one more byte.
_LONGEST_MESSAGE = 2 * LARGEST_BYTES + 65_536


def isolated(function: str | Callable[..., object], *, kill_after: Micros = KILL_AFTER) -> Handler:
    """Calls a function, named as `module:attribute` or importable by its name, in a process of its own.

    The worker need not be able to import it. What it prints is kept as log lines, and it ends when its run does.
    """
    target = _target_of(function)
    argv = [sys.executable, "-c", _PROGRAM]

    async def handler(job: ClaimedJob) -> object:
        order = {"parent": os.getpid(), "target": target, "job": list(job)}
        with open_log(job) as log:
            messages = _Messages(log)
            group = Group.start(
                [*argv, json.dumps(sys.path)],
                stdin=json.dumps(order).encode(),
                env=os.environ,
                out=Lines(partial(log.say, LogLevel.STDOUT)),
                err=Lines(partial(log.say, LogLevel.STDERR)),
                channel=messages,
            )
            code = await group.ended(kill_after=kill_after)
        return messages.ending or _unanswered(code)

    # One that is only named need not be importable here, so nobody knows what it takes before it runs.
    return handler if isinstance(function, str) else Fitted(Call(function), handler)


def _target_of(function: str | Callable[..., object]) -> str:
    if isinstance(function, str):
        module, colon, attribute = function.partition(":")
        if not (module and colon and attribute):
            raise InvalidInput("function", f"{function[:60]!r} names no function", fix="write it as module:attribute")
        return function
    name = getattr(function, "__qualname__", "<")
    if function.__module__ == "__main__" or "<" in name:
        raise InvalidInput(
            "function", f"{name} of {function.__module__} cannot be imported", fix="move it to the top of a module"
        )
    return f"{function.__module__}:{name}"


def _unanswered(code: int) -> Ending:
    return Ending(status=JobStatus.FAILED, error=f"its process {exit_text(code)} without an answer", exit_code=code)


class _Messages:
    """What the process tells, one JSON text a line: words, progress, and in the end its answer."""

    def __init__(self, log: JobLog) -> None:
        self._log = log
        self._open = b""
        self.ending: Ending | None = None

    def feed(self, chunk: bytes) -> None:
        *whole, self._open = (self._open + chunk).split(b"\n")
        for line in whole:
            self._take(line)
        if len(self._open) > _LONGEST_MESSAGE:
            self._open = b""  # nothing of ours is that long

    def close(self) -> None: ...

    def _take(self, line: bytes) -> None:
        """Whatever else a program may write there is no message."""
        try:
            match json.loads(line):
                case {"say": str(text), "level": str(level)}:
                    self._log.say(LogLevel(level), text.encode("utf-8", "replace"))
                case {"permille": int(permille), "note": str(note)} if 0 <= permille <= 1_000:
                    self._log.progress(permille, note)
                case {"ending": dict(ending)}:
                    self.ending = self.ending or _ending_from(ending)
        except (ValueError, RecursionError):
            return


def _ending_from(told: dict[str, Any]) -> Ending:
    try:
        return Ending(**(told | {"status": JobStatus(told["status"])}))
    except (ValueError, TypeError, KeyError) as error:
        return failure(f"its process gave an answer that cannot be kept: {error}", retryable=False)
