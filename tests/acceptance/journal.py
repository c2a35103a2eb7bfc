"""An append-only journal that many processes write, one line and one write per fact."""

import json
import os
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def boottime() -> float:
    """Seconds since the machine started: one clock for all its processes, which nobody steps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boottime_of(seconds_since_1970: float) -> float:
    return boottime() - time.time() + seconds_since_1970


class Journal:
    """With `fsync`, a fact that was noted survives whatever happens to the process and the machine."""

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._fsync = fsync

    def note(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "pid": os.getpid(), "at": boottime(), **facts}, separators=(",", ":"))
        os.write(self._fd, line.encode() + b"\n")
        if self._fsync:
            os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    event: str
    pid: int
    at: float
    job: str = ""
    chain: str = ""
    n: int = -1
    attempt: int = 0
    pool: str = ""
    lane: str | None = None
    token: int = 0
    key: str | None = None
    run: str | None = None
    said: str | None = None


class JournalReader:
    """All lines so far, by event; `read` adds those that were written since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._by_event: dict[str, list[Line]] = defaultdict(list)
        self.lines: list[Line] = []

    def read(self) -> list[Line]:
        if not self._path.exists():
            return self.lines
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for written in whole.splitlines():
            line = Line(**json.loads(_whole(written)))
            self.lines.append(line)
            self._by_event[line.event].append(line)
        return self.lines

    def noted(self, event: str) -> list[Line]:
        self.read()
        return self._by_event[event]

    def entered(self) -> list[Line]:
        return self.noted("enter")

    def left(self) -> list[Line]:
        return self.noted("leave")


def _whole(written: bytes) -> bytes:
    """Without what a process that was killed in the middle of its own line left before it."""
    return written[written.rindex(b'{"event"') :]
