"""Works that wait for the writer, and how their callers are told."""

import asyncio
import threading
from collections import deque
from typing import Any, Generic, TypeVar

from duly.storage.sqlite.steps import Work

Tx = TypeVar("Tx")


class Pending(Generic[Tx]):
    """One caller's work. Its outcome counts only once `answered`, which follows the commit."""

    __slots__ = ("answered", "error", "future", "taken", "value", "work")

    def __init__(self, work: Work[Tx, Any]) -> None:
        self.work = work
        self.taken = False
        self.answered = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[None] | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class Waiting(Generic[Tx]):
    """First come, first served; callers of several event loops, one taker at a time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[Pending[Tx]] = deque()
        self.closed = False

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, pending: Pending[Tx]) -> bool:
        """False once closed: what came before is still served, nothing comes after."""
        with self._guard:
            if not self.closed:
                self._queue.append(pending)
            return not self.closed

    def close(self) -> None:
        with self._guard:
            self.closed = True

    def take(self, at_most: int) -> list[Pending[Tx]]:
        with self._guard:
            queue = self._queue
            batch = [queue.popleft() for _ in range(min(at_most, len(queue)))]
            for pending in batch:
                pending.taken = True
        return batch

    def put_back(self, batch: list[Pending[Tx]]) -> None:
        with self._guard:
            for pending in batch:
                pending.taken = False
            self._queue.extendleft(reversed(batch))

    def drop(self, pending: Pending[Tx]) -> None:
        """Forgets a work whose caller has gone, unless it has been taken: then its commit stands."""
        with self._guard:
            if not pending.taken and not pending.answered:
                pending.taken = True
                self._queue.remove(pending)

    def park(self, pending: Pending[Tx]) -> asyncio.Future[None] | None:
        """What to wait for; nothing if the answer has come meanwhile."""
        with self._guard:
            if pending.answered:
                return None
            pending.future = asyncio.get_running_loop().create_future()
            return pending.future

    def answer(self, batch: list[Pending[Tx]]) -> None:
        """Tells every parked caller by one call per event loop; the others look when their turn comes."""
        parked: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        with self._guard:
            for pending in batch:
                pending.answered = True
                if pending.future is not None:
                    parked.setdefault(pending.future.get_loop(), []).append(pending.future)
        for loop, futures in parked.items():
            if not loop.is_closed():
                _tell(loop, futures)


def _tell(loop: asyncio.AbstractEventLoop, futures: list[asyncio.Future[None]]) -> None:
    try:
        loop.call_soon_threadsafe(_wake, futures)
    except RuntimeError:  # the loop was closed just now, so nobody is left to hear
        return


def _wake(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
