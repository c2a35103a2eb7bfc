"""The program that runs now: another takes its place while time is kept and what runs goes on."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress

from duly.app.duly import Duly
from duly.bootstrap import Handler, Queue, Worker
from duly.dev import demo
from duly.domain.declarations import Reconciled
from duly.domain.errors import DulyError
from duly.domain.instants import SECOND, Micros

# Of what runs when `duly dev` is told to stop: to end by itself, then to end when asked.
_GRACE = Micros(SECOND // 2)
_PATIENCE = Micros(SECOND)


class Stage:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._app: Duly | None = None
        self._worker: Worker | None = None
        self._workers: dict[Worker, asyncio.Task[None]] = {}
        self.broke_down: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def play(self, app: Duly) -> Reconciled:
        """The worker before begins nothing more, so that no new job meets an old handler.

        If this fails, all is as before.
        """
        before = self._app
        self._dismiss()
        try:
            reconciled = await app.prepare(self._queue)
            await self._retire_others(app, before)
            await self._employ(app)
        except Exception:
            if before is not None:
                await self._go_back(before, app)
            raise
        self._app = app
        return reconciled

    async def _go_back(self, before: Duly, app: Duly) -> None:
        with suppress(DulyError):
            await before.prepare(self._queue)
            await self._retire_others(before, app)
        await self._employ(before)

    def handlers(self) -> Mapping[str, Handler]:
        """Of the program that runs now, for direct calls."""
        return {} if self._app is None else self._app.handlers

    async def close(self) -> None:
        """What runs may end for a moment, then it is asked to; what does not is tried again at the next start."""
        self._dismiss()
        ends = list(self._workers.values())
        if ends:
            await asyncio.wait(ends, timeout=_GRACE / SECOND)
        for worker in self._workers:
            worker.hurry()
        await asyncio.gather(*ends, return_exceptions=True)

    async def _retire_others(self, app: Duly, before: Duly | None) -> None:
        """A demo of this run or an earlier one ends when there is a program; so does what has changed its name."""
        others = {(demo.NAME, demo.OWNER)} | ({(before.name, before.owner)} if before else set())
        for name, owner in others - {(app.name, app.owner)}:
            await self._queue.declarations.reconcile(name, [], owner=owner)

    async def _employ(self, app: Duly) -> None:
        worker = self._queue.worker(
            handlers=app.handlers,
            pools=await app.worker_pools(self._queue),
            name=f"duly dev {os.getpid()}",
            patience=_PATIENCE,
        )
        self._worker = worker
        self._workers[worker] = task = asyncio.create_task(worker.run())
        task.add_done_callback(lambda done: self._left(worker, done))

    def _dismiss(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def _left(self, worker: Worker, task: asyncio.Task[None]) -> None:
        del self._workers[worker]
        if not task.cancelled() and (error := task.exception()) and not self.broke_down.done():
            self.broke_down.set_exception(error)
