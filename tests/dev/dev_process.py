"""`duly dev` as a person runs it: a process of its own in a folder, its lines read as they come."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

PATIENCE_S = 90


class Dev:
    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "duly", "dev", "--port", "0", *arguments],
            cwd=folder,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def until(self, holds: Callable[[str], bool], *, after: int = 0, times: int = 1) -> str:
        """The line for which this holds, the `times`th such after the first `after` lines."""
        deadline = time.monotonic() + PATIENCE_S
        with self._news:
            while True:
                found = [line for line in self.lines[after:] if holds(line)]
                if len(found) >= times:
                    return found[times - 1]
                left = deadline - time.monotonic()
                assert not self._is_over, f"it ended: {self.text}"
                assert left > 0, f"not within {PATIENCE_S} s: {self.text}"
                self._news.wait(left)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def url(self) -> str:
        head = self.until(lambda line: "http://" in line)
        return next(word for word in head.split() if word.startswith("http://"))

    def get(self, path: str) -> Any:
        return json.loads(self.read(path))

    def read(self, path: str) -> str:
        with urlopen(self.url + path, timeout=PATIENCE_S) as answer:  # noqa: S310 - this machine's own
            return str(answer.read(), "utf-8")

    def following(self, run: str) -> Any:
        """The run's stream of events."""
        return urlopen(f"{self.url}/api/v1/runs/{run}/events", timeout=PATIENCE_S)  # noqa: S310 - this machine's own

    def stop(self, number: int = signal.SIGINT) -> float:
        """How long it took to end."""
        asked = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        took = time.monotonic() - asked
        self._reader.join(PATIENCE_S)
        return took

    def close(self) -> None:
        self.process.wait()
        self._reader.join(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def code(self) -> int:
        return self.process.wait(PATIENCE_S)


@contextmanager
def dev(folder: Path, *arguments: str, **environment: str) -> Iterator[Dev]:
    running = Dev(folder, *arguments, **environment)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.close()


def refused(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code and what was said, of one that does not begin."""
    with dev(folder, *arguments, **environment) as process:
        code = process.code
        process._reader.join(PATIENCE_S)
        return code, process.text


def ran(name: str) -> Callable[[str], bool]:
    return lambda line: f" {name} " in line and " ran in " in line


def audit(folder: Path, *arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "duly", "audit"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
