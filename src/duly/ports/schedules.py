"""Schedules as a store keeps them, in one transaction."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import Instant
from duly.domain.schedules import Revision, Schedule, Standing


class ScheduleStore(Protocol):
    async def get(self, schedule_id: ScheduleId) -> Schedule | None: ...

    async def lock(self, schedule_id: ScheduleId) -> Schedule | None:
        """The schedule, kept from changing and from opening slots until commit."""

    async def add(self, schedule: Schedule) -> bool:
        """Adds a schedule with its first revision; False, and nothing written, if its id is taken."""

    async def revise(self, schedule: Schedule) -> None:
        """Writes a changed schedule and appends its revision."""

    async def of_owner(self, owner: Owner | None, *, after: ScheduleId | None, most: int) -> list[Schedule]:
        """In order of id, tombstones left out; of every owner if none is named."""

    async def revisions(self, schedule_id: ScheduleId) -> list[Revision]:
        """First to last."""

    async def due(self, now: Instant, most: int) -> list[Schedule]:
        """Schedules whose next slot fires by now, the earliest first, kept from others until commit.

        One that someone else has locked is passed over. One whose cron expression or zone can no longer be read has an
        `UnreadableCron`, which raises when it is asked for a slot: judge each schedule by itself.
        """

    async def advance(self, schedules: Sequence[Schedule | Standing]) -> None:
        """Moves `opened_through`, next slot, `fire_at` and `last_run_at` forward; never back."""
