"""What past runs have cost, as a store can tell."""

from typing import Protocol

from duly.domain.estimates import Past
from duly.domain.ids import ScheduleId


class EstimateStore(Protocol):
    async def past_of(self, schedule_id: ScheduleId, *, most: int) -> list[Past]:
        """Of its newest runs whose holds have ended, by currency."""
