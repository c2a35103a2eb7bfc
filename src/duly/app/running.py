"""Runs what keeps time and what works side by side until one of them ends or somebody says stop."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Part(Protocol):
    async def run(self) -> None: ...

    def stop(self) -> None: ...


class Stop:
    """To be asked for from any thread, and from signals."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def ask(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._asked.set)

    async def wait(self) -> None:
        await self._asked.wait()


async def run_until(stop: Stop, parts: Sequence[Part]) -> None:
    """However this ends, the parts are told to stop and waited for: they end what runs, within their grace."""
    tasks = [asyncio.create_task(part.run()) for part in parts]
    asked = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({*tasks, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        for part in parts:
            part.stop()
        # All of them, even if one fails: what a part still does, it does on a queue that is about to be closed.
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        task.result()


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """SIGINT and SIGTERM ask to stop, for as long as this lasts; only the main thread is sent any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)


@asynccontextmanager
async def running(parts: Sequence[Part]) -> AsyncIterator[None]:
    """The parts run while this lasts: for programs that have a main task of their own."""
    stop = Stop()
    task = asyncio.create_task(run_until(stop, parts))
    try:
        yield
    finally:
        stop.ask()
        await task
