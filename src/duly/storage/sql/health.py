"""What readiness and metrics ask for, in SQL."""

from duly.domain.health import MOST_NAMED, Census, Vitals
from duly.domain.instants import Instant
from duly.domain.jobs import JobState
from duly.storage.executor import Executor
from duly.storage.sql.rows import pool_from_row


class SqlHealth:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def vitals(self, *, overdue: Instant) -> Vitals:
        ((alive_at, next_fire_at, count),) = await self._x.fetch("vitals", overdue=overdue)
        late = await self._x.fetch("longest_overdue", overdue=overdue, most=MOST_NAMED) if count else []
        return Vitals(alive_at, next_fire_at, count, tuple(schedule_id for (schedule_id,) in late))

    async def census(self) -> Census:
        jobs = await self._x.fetch("count_jobs")
        ((runs_in_flight,),) = await self._x.fetch("count_runs_in_flight")
        ((sessions,),) = await self._x.fetch("count_sessions")
        return Census(
            schedules={state: count for state, count in await self._x.fetch("count_schedules") if count},
            jobs={(pool, JobState(state)): count for pool, state, count, _ in jobs},
            runs_in_flight=runs_in_flight,
            sessions=sessions,
            pools=[pool_from_row(row) for row in await self._x.fetch("all_pools")],
            oldest_ready_at=min((due for *_, due in jobs if due is not None), default=None),
        )
