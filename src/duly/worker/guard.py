"""Sees to it that no process that a worker started outlives it, even if the worker is killed."""

import atexit
import subprocess
import sys
import threading
from pathlib import Path

_PROGRAM = Path(__file__).with_name("guard_process.py")


class Guard:
    """A small process beside this one, started with the first group: when the pipe to it closes, it kills what is left.

    Between the start of a group and its being watched lies a moment in which `kill -9` leaves the group behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        with self._lock:
            self._end()

    def _tell(self, line: str) -> None:
        """To a new one, if there is none or somebody killed it."""
        try:
            self._write(line)
        except BrokenPipeError:
            self._end()
            self._write("".join(f"+{group}\n" for group in self._groups))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def _write(self, text: str) -> None:
        if self._process is None:
            self._process = _started()
        if self._process.stdin is not None:
            self._process.stdin.write(text.encode())


def _started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        bufsize=0,
        start_new_session=True,
    )


GUARD = Guard()
atexit.register(GUARD.close)
