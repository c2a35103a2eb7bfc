"""What a handler may know about its run, and say while it goes on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from duly.domain.ids import JobId
from duly.domain.logs import LogLevel, line_text
from duly.domain.payloads import value_of
from duly.domain.schedules import schedule_of_key, slot_of_key
from duly.domain.sessions import ClaimedJob
from duly.domain.slots import Slot
from duly.worker.job_log import blocks_of


class Stopped(asyncio.CancelledError):
    """The run was asked to stop. No `Exception`, so that a handler's `except Exception` does not swallow it."""


class Voice(Protocol):
    """Where a run's words go."""

    def say(self, level: LogLevel, lines: bytes) -> None: ...

    def progress(self, permille: int, note: str) -> None: ...


@dataclass(frozen=True, slots=True)
class JobContext:
    """Given to functions that ask for it by a parameter annotated `JobContext`, or named `context`."""

    job: ClaimedJob
    _voice: Voice
    _is_asked_to_stop: Callable[[], bool]

    @property
    def job_id(self) -> JobId:
        return self.job.id

    @property
    def kind(self) -> str:
        return self.job.kind

    @property
    def attempt(self) -> int:
        """Counted from 1 along the chain of retries."""
        return self.job.attempt

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = value_of(self.job.payload)
        return params

    @property
    def slot(self) -> Slot | None:
        """The slot this run is for; None for a job that no schedule put."""
        key = self.job.key
        if self.job.ledger_run is None or key is None or (at := slot_of_key(key)) is None:
            return None
        return Slot(at=at, schedule_id=schedule_of_key(key, self.job.lane), key=key)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt: pass it along when the outside world is changed."""
        return self.job.key or self.job.chain

    def log(self, text: str, *, level: str = LogLevel.INFO) -> None:
        """Keeps a line of text, or several, with the job."""
        for block in blocks_of(text.removesuffix("\n").encode("utf-8", "replace")):
            self._voice.say(LogLevel(level), block)

    def progress(self, fraction: float, note: str = "") -> None:
        """How much is done, from 0 to 1, and of what; only the newest is kept."""
        permille = round(min(max(fraction, 0.0), 1.0) * 1_000)
        self._voice.progress(permille, line_text(note.encode("utf-8", "replace")))

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop: its time is up, it was cancelled, or its worker stops."""
        return self._is_asked_to_stop()

    def check(self) -> None:
        """Raises `Stopped` if the run was asked to stop: for loops that can end between any two rounds."""
        if self.cancelled:
            raise Stopped
