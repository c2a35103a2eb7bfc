"""Positions for new jobs: creation time in microseconds, never twice and never backwards within a process."""

from duly.domain.instants import Instant


class Places:
    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def take(self, now: Instant, count: int = 1) -> int:
        """The first of `count` positions in a row. A clock set back must not put a newer job before an older one."""
        first = max(self._last + 1, int(now))
        self._last = first + count - 1
        return first
