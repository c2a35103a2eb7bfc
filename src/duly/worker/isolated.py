"""The process in which an isolated function runs: takes its order from its input, and answers through a channel."""

import asyncio
import importlib
import inspect
import json
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from dataclasses import asdict
from types import FrameType
from typing import Any

from duly.domain.jobs import Ending
from duly.domain.logs import LogLevel
from duly.domain.sessions import ClaimedJob
from duly.worker.calls import Call
from duly.worker.context import JobContext, Stopped
from duly.worker.handlers import ending_of, failure_of
from duly.worker.traces import tell_trace

_EXIT_STOPPED = 128 + signal.SIGTERM


def main() -> None:
    channel = _Channel(int(os.environ.pop("DULY_CHANNEL")))
    order = json.load(sys.stdin)
    me = os.getpid()
    if os.getppid() != order["parent"]:
        sys.exit("the worker died before this process was watched")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        ending = _Run(ClaimedJob(*order["job"]), channel).answer_of(order["target"])
    except asyncio.CancelledError:
        sys.exit(_EXIT_STOPPED)
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its run's failure
        if os.getpid() == me:
            tell_trace(channel, error)
        ending = failure_of(error)
    if os.getpid() != me:
        os._exit(0)  # a copy that the function forked has nothing to report
    channel.send(ending=asdict(ending))


class _Run:
    """One call. Asked to stop, a function that takes the context sees it there, any other is interrupted."""

    def __init__(self, job: ClaimedJob, channel: "_Channel") -> None:
        self._asked = threading.Event()
        self._interrupts = True
        self._context = JobContext(job, channel, self._asked.is_set)
        signal.signal(signal.SIGTERM, self._on_sigterm)

    def answer_of(self, target: str) -> Ending:
        call = Call(_imported(target))
        self._interrupts = not call.takes_context
        answer = call(self._context)
        return ending_of(asyncio.run(self._awaited(answer)) if inspect.iscoroutine(answer) else answer)

    async def _awaited(self, coroutine: Coroutine[Any, Any, object]) -> object:
        task = asyncio.ensure_future(coroutine)

        def stop() -> None:
            self._asked.set()
            task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        return await task

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self._asked.set()
        if self._interrupts:
            raise Stopped


def _imported(target: str) -> Any:
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found


class _Channel:
    """The way back to the worker; several threads may speak."""

    def __init__(self, file: int) -> None:
        os.set_inheritable(file, False)
        self._file = file
        self._lock = threading.Lock()

    def say(self, level: LogLevel, lines: bytes) -> None:
        self.send(say=lines.decode("utf-8", "replace"), level=level)

    def progress(self, permille: int, note: str) -> None:
        self.send(permille=permille, note=note)

    def send(self, **message: Any) -> None:
        text = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            while text:
                text = text[os.write(self._file, text) :]
