"""Commands that go on until they are stopped: what runs side by side, what stops it, and where it logs."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from duly.app.running import Part as Part  # noqa: PLC0414 - commands take it from here
from duly.app.running import Stop, run_until, stopped_by_signals
from duly.bootstrap import Queue as Queue  # noqa: PLC0414 - commands take it from here
from duly.bootstrap import Settings, configure_logging, settings_of_environment

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(work: Callable[[Queue], Awaitable[None]], settings: Settings | None = None) -> None:
    async def main() -> None:
        chosen = settings or settings_of_environment()
        configure_logging(chosen)
        queue = await Queue.observed(chosen)
        try:
            await work(queue)
        finally:
            await queue.close()

    asyncio.run(main())


async def until_stopped(parts: Sequence[Part]) -> None:
    """However this ends, the parts are told to stop and waited for: they end what runs, within their grace."""
    stop = Stop()
    with stopped_by_signals(stop):
        await run_until(stop, parts)


@contextmanager
def stopping(stop: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask to stop, for as long as this lasts."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def own_name(program: str) -> str:
    return f"{program} {os.getpid()}"
