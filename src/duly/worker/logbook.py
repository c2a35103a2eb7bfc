"""Gathers what a worker's runs say and writes it in batches. A store that cannot take it loses lines, never a job."""

import asyncio
import threading
from contextlib import suppress
from contextvars import ContextVar

from duly.application.logs import Logs
from duly.domain.errors import Unavailable
from duly.domain.ids import JobId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.logs import Artifact, LogLine, Progress
from duly.domain.sessions import ClaimedJob
from duly.worker.job_log import ROW_BYTES, Book, JobLog

EVERY = Micros(SECOND // 2)
BATCH = 200
_MOST_LINES_AT_ONCE = 1_000
_MOST_BYTES = 16 * 1_048_576


class Logbook:
    """Written every half second, and sooner when much was said or a job has ended.

    While the store cannot be reached it holds back a bounded part; what comes beyond that is lost.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._lock = threading.Lock()
        self._lines: list[LogLine] = []
        self._bytes = 0
        self._progress: dict[JobId, Progress] = {}
        self._artifacts: list[Artifact] = []
        # One batch at a time: whoever follows a job by its last number must not be shown a later one first.
        self._writing = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """From now on, handlers that are entered in this task's context write here."""
        self._loop = asyncio.get_running_loop()
        _current.set(self)

    def close(self) -> None:
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_empty(self) -> bool:
        """Nothing is left to be written, and nothing is on its way: whoever reports an end may do so now."""
        return not (self._has_words or self._writing.locked())

    @property
    def _has_words(self) -> bool:
        return bool(self._lines or self._progress or self._artifacts)

    def now(self) -> Instant:
        return self._logs.storage.clock.now()

    def add_line(self, line: LogLine) -> None:
        with self._lock:
            if self._bytes >= _MOST_BYTES:
                return
            self._lines.append(line)
            self._bytes += _size(line)
            count = len(self._lines)
        if count in (1, BATCH):
            self._write_in(EVERY if count == 1 else Micros(0))

    def add_progress(self, progress: Progress) -> None:
        with self._lock:
            is_first = not self._progress
            self._progress[progress.job_id] = progress
        if is_first:
            self._write_in(EVERY)

    def add_artifact(self, artifact: Artifact) -> None:
        with self._lock:
            self._artifacts.append(artifact)
        self._write_in(EVERY)

    async def flush(self) -> None:
        """Writes all that was said so far, if the store takes it."""
        async with self._writing:
            while self._has_words:
                lines, progress, artifacts = self._take()
                try:
                    await self._logs.keep(lines, list(progress.values()), artifacts)
                except Unavailable:
                    self._put_back(lines, progress, artifacts)
                    self._write_in(Micros(2 * EVERY))
                    return
                except Exception:  # noqa: BLE001, S112 - lines that no store will ever take must not stand before others
                    continue

    def _take(self) -> tuple[list[LogLine], dict[JobId, Progress], list[Artifact]]:
        with self._lock:
            lines, self._lines = self._lines[:_MOST_LINES_AT_ONCE], self._lines[_MOST_LINES_AT_ONCE:]
            self._bytes -= sum(map(_size, lines))
            progress, self._progress = self._progress, {}
            artifacts, self._artifacts = self._artifacts, []
        return lines, progress, artifacts

    def _put_back(self, lines: list[LogLine], progress: dict[JobId, Progress], artifacts: list[Artifact]) -> None:
        with self._lock:
            self._lines = lines + self._lines
            self._bytes += sum(map(_size, lines))
            self._progress = progress | self._progress
            self._artifacts = artifacts + self._artifacts

    def _write_in(self, wait: Micros) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # a thread that speaks after the loop has ended is not heard
                loop.call_soon_threadsafe(self._arm, wait)

    def _arm(self, wait: Micros) -> None:
        """Sooner than planned, if asked to; never later."""
        loop = self._loop
        if loop is None:
            return
        at = loop.time() + wait / SECOND
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        task = loop.create_task(self.flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)


class _Nowhere:
    """For handlers that are called without a worker."""

    def now(self) -> Instant:
        return Instant(0)

    def add_line(self, line: LogLine) -> None: ...

    def add_progress(self, progress: Progress) -> None: ...

    def add_artifact(self, artifact: Artifact) -> None: ...


# Handlers are plain functions of a job, so what they write in comes to them by the context they are entered in.
_current: ContextVar[Book] = ContextVar("logbook", default=_Nowhere())  # noqa: B039 - it holds nothing


def open_log(job: ClaimedJob) -> JobLog:
    """The log of a run that is being entered, in its worker's book."""
    return JobLog(job.id, _current.get())


def _size(line: LogLine) -> int:
    return len(line.text) + ROW_BYTES
