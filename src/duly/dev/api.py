"""The API of `duly dev`."""

import asyncio
from collections.abc import Callable

from duly.bootstrap import Queue


async def serve(queue: Queue, *, host: str, port: int, stop: asyncio.Event, on_ready: Callable[[str], None]) -> None:
    del queue
    on_ready(f"http://{host}:{port}")
    await stop.wait()
