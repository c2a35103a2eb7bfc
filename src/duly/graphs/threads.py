"""Functions that block, in threads of their own which hold nothing up: not the loop, not the end of the program."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(function: Callable[[], T], *, name: str) -> T:
    """Whoever is cancelled leaves the thread behind: threads cannot be stopped."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def hand_over(value: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)  # type: ignore[arg-type]
        else:
            answer.set_exception(error)

    def go() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except StopIteration as stopped:  # no future takes one
            error = RuntimeError(f"it raised StopIteration: {stopped}")
        except BaseException as raised:  # noqa: BLE001 - handed to whoever waits
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(hand_over, value, error)

    threading.Thread(target=go, name=name, daemon=True).start()
    return await answer
