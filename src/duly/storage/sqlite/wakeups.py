"""Hints that something may have changed: to the listeners of this process at once, to others by datagram."""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock
from duly.storage.sqlite.peers import EVERYTHING, Peers

# How long a change by another process may stay unnoticed when its datagram was lost.
BACKSTOP_MICROS = SECOND


class SqliteWakeups:
    """`data_version` answers a number that changes when another process commits, or None when it cannot say
    now.
    """

    def __init__(self, *, clock: Clock, data_version: Callable[[], int | None], peers_of: str | None) -> None:
        self._clock = clock
        self._data_version = data_version
        self._guard = threading.Lock()
        self._listeners: tuple[SqliteListener, ...] = ()
        self._peers = None if peers_of is None else Peers(peers_of, clock, self._tell_listeners)

    def announce(self, topics: frozenset[str]) -> None:
        self._tell_listeners(topics)
        if self._peers is not None:
            self._peers.announce(topics)

    def listen(self) -> "SqliteListener":
        listener = SqliteListener(self, clock=self._clock, backstop=self._peers is not None)
        with self._guard:
            self._listeners = (*self._listeners, listener)
        if self._peers is not None:
            self._peers.start_hearing()
        return listener

    def close(self) -> None:
        if self._peers is not None:
            self._peers.close()

    def data_version(self) -> int | None:
        return self._data_version()

    def forget(self, listener: "SqliteListener") -> None:
        with self._guard:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _tell_listeners(self, topics: frozenset[str]) -> None:
        for listener in self._listeners:
            listener.hear(topics)


class SqliteListener:
    """Bound to the event loop that made it; may be told from any thread."""

    def __init__(self, wakeups: SqliteWakeups, *, clock: Clock, backstop: bool) -> None:
        self._wakeups = wakeups
        self._clock = clock
        self._backstop = backstop
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._guard = threading.Lock()
        self._heard: set[str] = set()
        self._told = False
        self._waiter: asyncio.Future[None] | None = None
        self._seen_version = wakeups.data_version() if backstop else None

    async def wait(self, at_most: Micros) -> frozenset[str]:
        until = self._clock.lease_now() + at_most
        left = at_most
        while not (topics := self._take()) and left > 0:
            await self._sleep_or_hear(min(left, BACKSTOP_MICROS) if self._backstop else left)
            if not self._heard and self._changed_elsewhere():
                return EVERYTHING
            left = Micros(until - self._clock.lease_now())
        return topics

    def close(self) -> None:
        self._wakeups.forget(self)

    def hear(self, topics: frozenset[str]) -> None:
        with self._guard:
            self._heard |= topics
            if self._told:
                return
            self._told = True
        if threading.get_ident() == self._thread_id:
            self._wake()
            return
        with contextlib.suppress(RuntimeError):  # its loop has ended: nobody is left to hear
            self._loop.call_soon_threadsafe(self._wake)

    def _take(self) -> frozenset[str]:
        with self._guard:
            topics, self._heard = frozenset(self._heard), set()
            self._told = False
        return topics

    def _wake(self) -> None:
        if self._waiter is not None:
            _release(self._waiter)

    async def _sleep_or_hear(self, at_most: Micros) -> None:
        """Sleeps by the Clock port, so that a simulated day passes as fast as the simulation likes."""
        waiter = self._waiter = self._loop.create_future()
        sleeper = asyncio.ensure_future(self._clock.sleep(at_most))
        # Of this waiter only: a sleeper that is cancelled below reports when the next one may be waiting.
        sleeper.add_done_callback(lambda _: _release(waiter))
        try:
            if not self._heard:
                await waiter
        finally:
            sleeper.cancel()
            self._waiter = None

    def _changed_elsewhere(self) -> bool:
        if not self._backstop:
            return False
        version = self._wakeups.data_version()
        if version is None or version == self._seen_version:
            return False
        known, self._seen_version = self._seen_version, version
        return known is not None


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
