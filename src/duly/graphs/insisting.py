"""A store that is away for a moment is no reason for a graph to fail, as long as its attempt has its lease."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock
from duly.ports.graphs import GraphCall

T = TypeVar("T")

_RETRY_EVERY = Micros(SECOND // 2)


async def insisting(call: GraphCall, clock: Clock, write: Callable[[], Awaitable[T]]) -> T:
    """Raises LeaseLost when somebody else may go on with it."""
    while True:
        try:
            return await write()
        except Unavailable:
            call.check_lease()
            await clock.sleep(_RETRY_EVERY)
