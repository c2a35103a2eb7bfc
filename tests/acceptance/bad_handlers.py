"""Handlers that misbehave, for worker processes of tests. Each process they start is noted in a file, one a line."""

import os
import time
from pathlib import Path

from duly.worker.commands import command
from duly.worker.context import JobContext
from duly.worker.handlers import Handler
from duly.worker.isolation import isolated
from duly.worker.threads import in_thread


def spin(rounds: int, context: JobContext) -> str:
    """In C code that neither lets go of the interpreter's lock nor looks for signals; a retry does nothing.

    Not while another thread of the process writes: with the file's lock it would hold up every other process, too.
    """
    while _is_writing():
        time.sleep(0.001)
    if context.attempt == 1:
        sum(range(rounds))
    return f"attempt {context.attempt}"


def ignore(path: str, context: JobContext) -> None:
    """Could see that it is asked to stop, and does not look."""
    _note(path)
    context.log("I will not stop")
    while True:
        time.sleep(60)


def fork(path: str) -> None:
    """Leaves a child and a grandchild that wait for ever, and waits itself."""
    if os.fork() == 0:
        os.fork()
    _note(path)
    time.sleep(600)


def rest(path: str, seconds: float) -> str:
    _note(path)
    time.sleep(seconds)
    return "rested"


def _is_writing() -> bool:
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(lock[1] == "FLOCK" and lock[4] == str(os.getpid()) for lock in locks)


def _note(path: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")


_HERE = "tests.acceptance.bad_handlers"
_FORKING_PROGRAM = """path=$(sed 's/.*"path":"\\([^"]*\\)".*/\\1/'); trap '' TERM
sleep 600 & echo $! >> "$path"; echo $$ >> "$path"; wait; sleep 600"""

HANDLERS: dict[str, Handler] = {
    "spin_in_thread": in_thread(spin),
    "spin_isolated": isolated(f"{_HERE}:spin"),
    "ignore_in_thread": in_thread(ignore),
    "fork_isolated": isolated(f"{_HERE}:fork"),
    "fork_program": command(["sh", "-c", _FORKING_PROGRAM]),
    "flood": command(["sh", "-c", "yes 0123456789abcde | head -c 1073741824"]),
    "rest_in_thread": in_thread(rest),
    "rest_isolated": isolated(f"{_HERE}:rest"),
}
