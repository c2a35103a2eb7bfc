"""A graph that goes on by itself, heard from outside: what it tells comes in order, its result comes last."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from itertools import count

from duly.domain.executions import ErrorCode, GraphFailed, GraphResult
from duly.ports.graphs import GraphEvent

MOST_TOLD = 50_000
"""By one attempt: what is told waits in memory until it is written."""

Told = GraphEvent | GraphResult
Tell = Callable[[GraphEvent], None]


class Telling:
    """A run as the execution service sees it, over a generator of events that ends with a result."""

    def __init__(self, told: AsyncGenerator[Told, None]) -> None:
        self._told = told
        self._result: GraphResult | None = None
        self._is_drained = False

    async def __aiter__(self) -> AsyncIterator[GraphEvent]:
        async for each in self._told:
            if isinstance(each, GraphResult):
                self._result = each
            else:
                yield each
        self._is_drained = True

    async def final(self) -> GraphResult:
        if not self._is_drained:
            raise GraphFailed("its events were not drained, so its result is not known")
        if self._result is None:
            raise GraphFailed("it ended without a result")
        return self._result

    async def aclose(self) -> None:
        await self._told.aclose()


async def told_by(work: Callable[[Tell], Awaitable[GraphResult]]) -> AsyncGenerator[Told, None]:
    """Runs `work` in a task of its own; it may tell from any thread.

    Whoever stops listening asks it to stop, and does not wait until it does: it might never.
    """
    loop = asyncio.get_running_loop()
    heard: asyncio.Queue[GraphEvent | None] = asyncio.Queue()

    told, is_over = count(1), threading.Event()

    def tell(event: GraphEvent) -> None:
        # Raised where it is told: a thread that nobody hears would go on for ever, and pile up what it says.
        if is_over.is_set():
            raise GraphFailed("nobody listens to it any more")
        if next(told) > MOST_TOLD:
            raise GraphFailed(f"the graph told more than {MOST_TOLD} events", error_code=ErrorCode.LOUD)
        if not loop.is_closed():
            loop.call_soon_threadsafe(heard.put_nowait, event)

    task = asyncio.ensure_future(_in_bounds(work, tell))
    # Behind everything that was told before, which call_soon keeps in order.
    task.add_done_callback(lambda _: tell_end())

    def tell_end() -> None:
        loop.call_soon(heard.put_nowait, None)

    try:
        while (event := await heard.get()) is not None:
            yield event
        yield task.result()
    finally:
        is_over.set()
        if not task.done():
            task.cancel()
        task.add_done_callback(_forget)


async def _in_bounds(work: Callable[[Tell], Awaitable[GraphResult]], tell: Tell) -> GraphResult:
    """A task that raises one of these ends the event loop, and with it the whole service."""
    try:
        return await work(tell)
    except (KeyboardInterrupt, SystemExit) as error:
        raise GraphFailed(f"{type(error).__name__}: {error}") from error


def _forget(task: asyncio.Future[GraphResult]) -> None:
    """Nobody listens any more; asked for, so that asyncio does not complain."""
    if not task.cancelled():
        task.exception()
