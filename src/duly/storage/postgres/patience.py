"""How long and how often to try again: exponential, with jitter, and bounded in all."""

from collections.abc import Callable

from duly.domain.instants import Micros
from duly.storage.postgres.errors import Interrupted
from duly.system.jitter import fraction
from duly.system.ticks import SystemTicks, Ticks

_FIRST = Micros(10_000)
_LONGEST = Micros(1_000_000)


class Backoff:
    """Pauses that double, each somewhere between half and the whole of its step."""

    __slots__ = ("_chance", "_step")

    def __init__(self, chance: Callable[[], float] = fraction) -> None:
        self._chance = chance
        self._step = _FIRST

    def next(self) -> Micros:
        # Two transactions that met in a deadlock must not meet again in the same rhythm.
        pause = Micros(int(self._step * (1 + self._chance()) / 2))
        self._step = Micros(min(self._step * 2, _LONGEST))
        return pause


class Patience:
    __slots__ = ("_backoff", "_limit", "_since", "_ticks", "attempts")

    def __init__(self, limit: Micros, *, ticks: Ticks | None = None, backoff: Backoff | None = None) -> None:
        self._ticks = ticks or SystemTicks()
        self._backoff = backoff or Backoff()
        self._limit = limit
        self._since = self._ticks.boottime()
        self.attempts = 1

    async def pause_or_give_up(self, trouble: Interrupted) -> None:
        pause = self._backoff.next()
        if self._ticks.boottime() - self._since + pause > self._limit:
            trouble.add_note(f"gave up after {self.attempts} attempts")
            raise trouble
        await self._ticks.sleep(pause)
        self.attempts += 1
