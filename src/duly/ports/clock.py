"""Time as the core may know it: handed in, never read from the machine."""

from typing import Protocol

from duly.domain.instants import Instant, Micros


class Clock(Protocol):
    """All processes that share one store agree on what these answer, within the store's own precision."""

    @property
    def era(self) -> str:
        """Names the boot that `lease_now` counts from; readings of two eras say nothing about each other."""

    def now(self) -> Instant:
        """The time of day, which may be stepped backwards or forwards by whoever owns the machine."""

    def lease_now(self) -> Micros:
        """Time for leases: only ever moves forward, whatever happens to the time of day."""

    async def agree(self) -> None:
        """Compares itself with the store's clock again, where they are two; called at each heartbeat."""

    async def sleep(self, duration: Micros) -> None:
        """Returns once at least `duration` has passed."""
