"""An event loop whose time passes only when nothing else is left to do, and the clocks that follow it."""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any

from duly.domain.instants import Instant, Micros


class NothingLeftToDo(Exception):
    """Every task waits for something that nobody will do."""


class _LeapingSelector(selectors.BaseSelector):
    """Never waits: it leaps to the moment the loop would wake up at."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingLeftToDo
        if timeout > 0:
            self.seconds += timeout
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, 0, None)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._leaping = _LeapingSelector()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.seconds


class VirtualClock:
    """The machine's clocks: the time of day can be set, the machine can sleep and can be booted anew."""

    def __init__(self, loop: VirtualLoop, *, start: int = 1_800_000_000_000_000) -> None:
        self._loop = loop
        self._start = start
        self._off_by = 0
        self._slept = 0
        self._booted_at = 0
        self._boots = 1

    @property
    def era(self) -> str:
        return f"boot {self._boots}"

    def now(self) -> Instant:
        return Instant(self._start + self.elapsed() + self._off_by)

    def lease_now(self) -> Micros:
        return Micros(self.elapsed() - self._booted_at)

    def elapsed(self) -> int:
        """Since the simulation began, whatever the clocks were told."""
        return round(self._loop.time() * 1_000_000) + self._slept

    async def agree(self) -> None:
        return None

    async def sleep(self, duration: Micros) -> None:
        await asyncio.sleep(max(duration, 0) / 1_000_000)

    def set_off_by(self, error: int) -> None:
        """Somebody sets the time of day, wrongly by so much."""
        self._off_by = error

    def sleep_machine(self, duration: int) -> None:
        self._slept += duration

    def reboot(self) -> None:
        self._boots += 1
        self._booted_at = self.elapsed()
