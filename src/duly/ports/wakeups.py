"""Hints between processes that something may have changed. A hint may be lost or come twice; work never is."""

from typing import Protocol

from duly.domain.instants import Micros


class Listener(Protocol):
    """Hears every topic announced, by this process or another, since the last `wait`."""

    async def wait(self, at_most: Micros) -> frozenset[str]:
        """Topics heard so far, at once if there are any; else waits, and answers empty when time is up."""

    def close(self) -> None: ...


class Wakeups(Protocol):
    def announce(self, topics: frozenset[str]) -> None:
        """Tells every listener, here and in other processes. Returns at once and never raises."""

    def listen(self) -> Listener:
        """A listener bound to the running event loop."""
