"""Schedules in SQL."""

from collections.abc import Sequence

from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.schedules import Revision, Schedule, Standing
from duly.storage.executor import Executor
from duly.storage.sql.schedule_rows import revision_from_row, revision_values, schedule_from_row, schedule_values
from duly.storage.sql.topics import SCHEDULES


class SqlSchedules:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def get(self, schedule_id: ScheduleId) -> Schedule | None:
        for row in await self._x.fetch("schedule_by_id", id=schedule_id):
            return schedule_from_row(row)
        return None

    async def lock(self, schedule_id: ScheduleId) -> Schedule | None:
        for row in await self._x.fetch("schedule_by_id_locked", id=schedule_id):
            return schedule_from_row(row)
        return None

    async def add(self, schedule: Schedule) -> bool:
        await self._x.fetch("insert_user", id=schedule.owner, now=schedule.created_at)
        if not await self._x.fetch("insert_schedule", **schedule_values(schedule)):
            # What an earlier run of the same work has added is its own.
            return self._x.rerun and schedule.recorded() in await self.revisions(schedule.id)
        await self._record(schedule)
        return True

    async def revise(self, schedule: Schedule) -> None:
        await self._x.fetch("update_schedule", **schedule_values(schedule))
        await self._record(schedule)

    async def _record(self, schedule: Schedule) -> None:
        await self._x.fetch("insert_revision", **revision_values(schedule.recorded()))
        self._x.wake(SCHEDULES)

    async def of_owner(self, owner: Owner | None, *, after: ScheduleId | None, most: int) -> list[Schedule]:
        if owner is None:
            rows = await self._x.fetch("all_schedules", after=after or "", most=most)
        else:
            rows = await self._x.fetch("schedules_of_owner", owner=owner, after=after or "", most=most)
        return [schedule_from_row(row) for row in rows]

    async def revisions(self, schedule_id: ScheduleId) -> list[Revision]:
        return [revision_from_row(row) for row in await self._x.fetch("revisions_of", schedule_id=schedule_id)]

    async def due(self, now: Instant, most: int) -> list[Schedule]:
        return [schedule_from_row(row) for row in await self._x.fetch("due_schedules", now=now, most=most)]

    async def advance(self, schedules: Sequence[Schedule | Standing]) -> None:
        rows = [
            (
                schedule.id,
                schedule.opened_through * SECOND,
                None if schedule.next_slot is None else schedule.next_slot * SECOND,
                schedule.fire_at,
                schedule.last_run_at,
            )
            for schedule in schedules
        ]
        await self._x.each("advance_schedules", rows)
