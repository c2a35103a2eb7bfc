"""Puts of many callers in one commit: whoever comes while others commit is gathered for the next one."""

import asyncio
from collections.abc import Sequence

from duly.domain.jobs import Entry
from duly.ports.storage import Storage, Transaction

# Two, so that one batch gathers and is sent while the other waits for the disk.
_AT_ONCE = 2
_LARGEST = 500


class Gathering:
    """Each job stands for itself: it is added, or something is in its way and its caller is told so."""

    __slots__ = ("_committing", "_tasks", "_waiting", "storage")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._committing = 0
        self._waiting: list[tuple[Entry, asyncio.Future[bool]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def put_at_once(self, entry: Entry) -> bool | None:
        """Whether it was added; None if others are ahead, or there is something to wait for: then `put` it."""
        return None if self._committing else self.storage.put_at_once(entry)

    async def put(self, entry: Entry) -> bool:
        if self._committing >= _AT_ONCE:
            added: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append((entry, added))
            return await added
        self._committing += 1
        try:
            return bool(await self._add([entry]))
        finally:
            self._go_on()

    async def _add(self, entries: Sequence[Entry]) -> set[str]:
        async def work(tx: Transaction) -> set[str]:
            return await tx.jobs.put_if_free(entries)

        return await self.storage.transact(work, single=True)

    def _go_on(self) -> None:
        if not self._waiting:
            self._committing -= 1
            return
        batch, self._waiting = self._waiting[:_LARGEST], self._waiting[_LARGEST:]
        task = asyncio.get_running_loop().create_task(self._add_for(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add_for(self, batch: Sequence[tuple[Entry, "asyncio.Future[bool]"]]) -> None:
        try:
            ids = await self._add([entry for entry, _ in batch])
        except BaseException as error:  # noqa: BLE001 - every caller hears what happened to its job
            for _, added in batch:
                if not added.done():
                    added.set_exception(error)
        else:
            for entry, added in batch:
                if not added.done():
                    added.set_result(entry.id in ids)
        finally:
            self._go_on()
