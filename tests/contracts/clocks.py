"""A clock that stands still until a test moves it."""

import asyncio

from duly.domain.instants import SECOND, Instant, Micros

MORNING = Instant(1_800_000_000_000_000)


class SettableClock:
    """`advance` lets time pass; `step` sets the time of day, as an owner or a time server would."""

    def __init__(self) -> None:
        self.era = "this-boot"
        self._now = int(MORNING)
        self._lease = 5_000_000_000

    def now(self) -> Instant:
        return Instant(self._now)

    def lease_now(self) -> Micros:
        return Micros(self._lease)

    async def agree(self) -> None:
        return None

    async def sleep(self, duration: Micros) -> None:
        self.advance(micros=duration)
        await asyncio.sleep(0)

    def advance(self, seconds: float = 0, *, micros: int = 0) -> None:
        passed = int(seconds * SECOND) + micros
        self._now += passed
        self._lease += passed

    def step(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)

    def reboot(self, era: str) -> None:
        self.era = era
        self._lease = 1_000_000
