"""Where a session's heart beats: beside the work, or in a thread that no handler can starve."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from duly.application.sessions import Sessions
from duly.ports.dice import Dice
from duly.ports.storage import Storage
from duly.worker.heart import Heart

# Builds the heart on the storage it beats through.
MakeHeart = Callable[[Sessions], Heart]


class Pulse(Protocol):
    async def start(self, make_heart: MakeHeart) -> None: ...

    def hurry(self) -> None:
        """Beats now."""

    async def stop(self) -> None: ...


class LoopPulse:
    """Beats in the worker's own event loop: for tests and simulations, where handlers never block."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._heart: Heart | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, make_heart: MakeHeart) -> None:
        self._heart = make_heart(self._sessions)
        self._task = asyncio.create_task(self._heart.run())

    def hurry(self) -> None:
        if self._heart is not None:
            self._heart.hurry()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class ThreadPulse:
    """Beats in a thread with an event loop and a storage of its own."""

    def __init__(self, open_storage: Callable[[], Awaitable[Storage]], dice: Dice) -> None:
        self._thread = OwnThread(open_storage)
        self._dice = dice
        self._heart: Heart | None = None

    async def start(self, make_heart: MakeHeart) -> None:
        async def beat(storage: Storage) -> None:
            self._heart = make_heart(Sessions(storage, self._dice))
            await self._heart.run()

        await self._thread.start(beat)

    def hurry(self) -> None:
        if self._heart is not None:
            self._thread.call(self._heart.hurry)

    async def stop(self) -> None:
        await self._thread.stop()


class OwnThread:
    """Runs a task in a thread with an event loop and a storage of its own."""

    def __init__(self, open_storage: Callable[[], Awaitable[Storage]]) -> None:
        self._open_storage = open_storage
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self, task: Callable[[Storage], Awaitable[None]]) -> None:
        started = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(
            target=self._run, args=(task, started, asyncio.get_running_loop()), name="duly-heart", daemon=True
        )
        self._thread.start()
        await started

    def call(self, callback: Callable[[], object]) -> None:
        """Calls back in the thread's own loop."""
        if self._loop is not None:
            with suppress(RuntimeError):  # its loop may have ended already
                self._loop.call_soon_threadsafe(callback)

    async def stop(self) -> None:
        # Said before looking: a thread that is still opening its store sees it afterwards.
        self._stopping = True
        if self._task is not None:
            self.call(self._task.cancel)
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(
        self,
        task: Callable[[Storage], Awaitable[None]],
        started: "asyncio.Future[None]",
        starter_loop: asyncio.AbstractEventLoop,
    ) -> None:
        async def run() -> None:
            try:
                storage = await self._open_storage()
            except Exception as error:  # noqa: BLE001 - whoever waits for the start is told why there is none
                _schedule(starter_loop, partial(_settle, started, error))
                return
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
            _schedule(starter_loop, partial(_settle, started, None))
            try:
                if not self._stopping:
                    await task(storage)
            finally:
                await storage.close()

        with suppress(asyncio.CancelledError):
            asyncio.run(run())


def _settle(started: "asyncio.Future[None]", error: Exception | None) -> None:
    """Whoever waited may have been cancelled meanwhile."""
    if started.done():
        return
    if error is None:
        started.set_result(None)
    else:
        started.set_exception(error)


def _schedule(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # that loop has ended: nobody waits
        loop.call_soon_threadsafe(call)
