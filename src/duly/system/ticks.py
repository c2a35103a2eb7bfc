"""Raw readings of the machine's counters; clocks are built from them, and nothing else reads them."""

import asyncio
import time
from typing import Protocol

from duly.domain.instants import SECOND, Micros


class Ticks(Protocol):
    def boottime(self) -> Micros:
        """Time since the machine started, with the time it was suspended."""

    def awake(self) -> Micros:
        """Time since the machine started, without the time it was suspended."""

    async def sleep(self, duration: Micros) -> None: ...


class SystemTicks:
    """Where the system has no boot-time counter the two readings are one, and suspension goes unseen."""

    __slots__ = ()

    def boottime(self) -> Micros:
        return Micros(time.clock_gettime_ns(_BOOTTIME) // 1_000)

    def awake(self) -> Micros:
        return Micros(time.monotonic_ns() // 1_000)

    async def sleep(self, duration: Micros) -> None:
        await asyncio.sleep(duration / SECOND)


_BOOTTIME: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
