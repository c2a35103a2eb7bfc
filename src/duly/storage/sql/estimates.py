"""What past runs have cost, in SQL."""

from duly.domain.estimates import Past
from duly.domain.ids import ScheduleId
from duly.storage.executor import Executor


class SqlEstimates:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def past_of(self, schedule_id: ScheduleId, *, most: int) -> list[Past]:
        rows = await self._x.fetch("past_costs", schedule_id=schedule_id, most=most)
        return [Past(runs=int(r), spent=int(s), unmetered=int(u), currency=currency) for r, s, u, currency in rows]
