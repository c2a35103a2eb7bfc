"""A worker beside the command, in a thread with an event loop of its own."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from duly.bootstrap import Handler, Queue, Settings
from duly.domain.ids import PoolName


@contextmanager
def working(url: str, handlers: Mapping[str, Handler]) -> Iterator[None]:
    begun, over = threading.Event(), threading.Event()

    async def work() -> None:
        queue = await Queue.open(Settings(database_url=url))
        worker = queue.worker(handlers=handlers, pools={PoolName("default"): 4}, name="beside")
        task = asyncio.create_task(worker.run())
        begun.set()
        await asyncio.to_thread(over.wait)
        worker.stop()
        await task
        await queue.close()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        over.set()
        thread.join(60)
