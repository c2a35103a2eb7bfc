"""Runs a work to its end in one go, since nobody but the writer may drive it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import TypeVar

Tx = TypeVar("Tx")
T = TypeVar("T")

Work = Callable[[Tx], Awaitable[T]]


def run_to_end(work: Work[Tx, T], tx: Tx) -> T:
    """The work's answer. A work that waits for anything would hold up every other, so it is closed and
    reported.
    """
    steps = work(tx).__await__()
    try:
        next(steps)
    except StopIteration as done:
        answer: T = done.value
        return answer
    close = getattr(steps, "close", None)
    if close is not None:
        with contextlib.suppress(RuntimeError):  # a work that awaits again while it is being closed
            close()
    raise RuntimeError(f"{_name(work)} awaited something other than its transaction")


@coroutine
def next_turn() -> Generator[None, None, None]:
    """Lets every task that is ready now go first."""
    yield


def is_alone() -> bool:
    """Whether no other task is ready, so that nobody can add a work before this one commits.

    Only asyncio's own loop can be asked; on any other there might be somebody.
    """
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    return ready is not None and not ready


def _name(work: object) -> str:
    return f"{getattr(work, '__module__', '?')}.{getattr(work, '__qualname__', repr(work))}"
