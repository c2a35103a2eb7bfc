"""What readiness and metrics ask a store for; nothing here writes."""

from typing import Protocol

from duly.domain.health import Census, Vitals
from duly.domain.instants import Instant


class HealthStore(Protocol):
    async def vitals(self, *, overdue: Instant) -> Vitals:
        """Schedules are overdue whose next slot fires before an instant; the longest overdue are named."""

    async def census(self) -> Census: ...
