"""Numbers that several processes write and one reads, in a mapped file: what a handler does costs no system call."""

import mmap
import time
from collections.abc import Callable
from pathlib import Path

_SLOTS = 4_096
_FIRST_STAMP = 64


class Tally:
    """Slots of 8 bytes: for each worker how many jobs it entered and when the first, then stamps in pairs."""

    def __init__(self, path: str | Path) -> None:
        with Path(path).open("r+b") as file:
            self._slots = memoryview(mmap.mmap(file.fileno(), _SLOTS * 8)).cast("Q")

    @staticmethod
    def create(path: Path) -> "Tally":
        path.write_bytes(bytes(_SLOTS * 8))
        return Tally(path)

    def stroke(self, worker: int) -> Callable[[], None]:
        """The trivial handler of every contender: it counts."""
        slots, count, first = self._slots, 2 * worker, 2 * worker + 1

        def stroke() -> None:
            if not slots[count]:
                slots[first] = time.monotonic_ns()
            slots[count] += 1

        return stroke

    def entered(self, workers: int) -> int:
        return sum(self._slots[2 * worker] for worker in range(workers))

    def first_entry_ns(self, workers: int) -> int:
        return min(self._slots[2 * worker + 1] for worker in range(workers) if self._slots[2 * worker])

    def stamp_put(self, number: int) -> None:
        self._slots[_FIRST_STAMP + 2 * number] = time.monotonic_ns()

    def stamp_entry(self, number: int) -> None:
        self._slots[_FIRST_STAMP + 2 * number + 1] = time.monotonic_ns()

    def pickup_ns(self, number: int) -> int | None:
        put, entry = self._slots[_FIRST_STAMP + 2 * number], self._slots[_FIRST_STAMP + 2 * number + 1]
        return entry - put if entry else None

    def entries(self, count: int) -> list[int] | None:
        """When each of so many numbers was entered, unless one was not."""
        entries = self._slots[_FIRST_STAMP + 1 : _FIRST_STAMP + 1 + 2 * count : 2].tolist()
        return None if 0 in entries else entries
