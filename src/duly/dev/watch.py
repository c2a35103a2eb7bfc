"""Sees that a file was changed, by its time and size: twice a second, which costs nothing."""

from pathlib import Path

from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock

_LOOK_EVERY = Micros(SECOND // 2)


class Watch:
    """What is there when it begins is no change."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._seen = self._look()

    async def changed(self) -> bool:
        """Waits for the next change; answers whether the file is there then."""
        while (found := self._look()) == self._seen:
            await self._clock.sleep(_LOOK_EVERY)
        self._seen = found
        return found is not None

    def _look(self) -> tuple[int, int, int] | None:
        try:
            stat = self._file.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
