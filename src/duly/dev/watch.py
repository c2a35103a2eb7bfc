"""Sees that a file was changed, by its time and size: twice a second, which costs nothing."""

from pathlib import Path

from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock

_LOOK_EVERY = Micros(SECOND // 2)


Look = tuple[int, int, int] | None


def look_at(file: Path) -> Look:
    """None if it is not there."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class Watch:
    """What was `seen` is no change: looked at before the file is read, lest a save in between goes unseen."""

    def __init__(self, file: Path, clock: Clock, *, seen: Look) -> None:
        self._file = file
        self._clock = clock
        self._seen = seen

    async def changed(self) -> bool:
        """Waits for the next change; answers whether the file is there then."""
        while (found := look_at(self._file)) == self._seen:
            await self._clock.sleep(_LOOK_EVERY)
        self._seen = found
        return found is not None
