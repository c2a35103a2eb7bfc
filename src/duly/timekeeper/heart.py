"""Says that time is being kept, whatever the openings are waiting for."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from duly.application.timekeeping import Timekeeping
from duly.domain.instants import SECOND, Micros
from duly.ports.storage import Storage

BEAT = Micros(5 * SECOND)
_RETRY_AFTER = Micros(SECOND // 2)


class Aside(Protocol):
    """A place beside the event loop, with a storage of its own, that no handler can starve."""

    async def start(self, task: Callable[[Storage], Awaitable[None]]) -> None: ...

    async def stop(self) -> None: ...


class Heart:
    """Extends coverage with every beat. A beat that fails is tried again: to stand still would look like an outage."""

    def __init__(self, keeping: Timekeeping) -> None:
        self._keeping = keeping
        self._clock = keeping.storage.clock

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._clock.agree()
                await self._keeping.keep_alive()
                rest = BEAT
            except Exception:  # noqa: BLE001 - whatever it was, the next beat may succeed
                rest = _RETRY_AFTER
            await self._clock.sleep(rest)
