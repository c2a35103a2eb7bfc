"""No process group outlives the worker that had it watched."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.worker.guard import Guard


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()


def _group() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "600"], start_new_session=True)


def test_groups_that_are_watched_are_killed_when_the_pipe_closes(guard: Guard) -> None:
    watched, forgotten = _group(), _group()
    guard.watch(watched.pid)
    guard.watch(forgotten.pid)
    guard.forget(forgotten.pid)

    guard.close()

    assert watched.wait(10) == -signal.SIGKILL
    assert forgotten.poll() is None
    forgotten.kill()
    forgotten.wait()


def test_a_guard_that_was_killed_is_replaced_and_told_all(guard: Guard) -> None:
    first, second = _group(), _group()
    guard.watch(first.pid)
    assert guard._process is not None
    guard._process.kill()
    guard._process.wait()

    guard.watch(second.pid)
    guard.close()

    assert [first.wait(10), second.wait(10)] == [-signal.SIGKILL] * 2


def test_a_guard_heeds_no_signal_but_the_end_of_its_worker(guard: Guard) -> None:
    group = _group()
    guard.watch(group.pid)
    process = guard._process
    assert process is not None
    unheeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    while not all(_ignores(process.pid, number) for number in unheeded):
        time.sleep(0.01)

    for number in unheeded:
        process.send_signal(number)
    guard.close()

    assert process.returncode == 0
    assert group.wait(10) == -signal.SIGKILL


def _ignores(pid: int, number: signal.Signals) -> bool:
    """As the kernel tells it."""
    status = Path(f"/proc/{pid}/status").read_text()
    (ignored,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")]
    return bool(int(ignored, 16) >> (number - 1) & 1)
