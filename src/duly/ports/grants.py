"""Grants as a store keeps them: revoked, never deleted."""

from typing import Protocol

from duly.domain.grants import Grant
from duly.domain.ids import GrantId, Owner, ScheduleId
from duly.domain.instants import Instant


class GrantStore(Protocol):
    async def add(self, grant: Grant) -> None:
        """Adding the same again changes nothing."""

    async def get(self, grant_id: GrantId) -> Grant | None: ...

    async def of_user(self, user: Owner | None) -> list[Grant]:
        """In order of id, revoked ones too; of every user if none is named."""

    async def revoke(self, grant_id: GrantId, *, now: Instant) -> None:
        """The first time stands."""

    async def touch(self, grant_id: GrantId, *, now: Instant) -> None:
        """It was used; never moves back."""

    async def of_schedule(self, schedule_id: ScheduleId) -> Grant | None: ...

    async def of_launches(self, workflow: str, version: int) -> Grant | None:
        """What a version of a workflow is launched under."""

    async def launch_under(self, workflow: str, version: int, grant_id: GrantId) -> None:
        """From now on; of a workflow that the caller has locked."""

    async def assign(self, schedule_id: ScheduleId, grant_id: GrantId | None) -> None:
        """The schedule's runs act under this grant from now on."""

    async def active_schedules(self, grant_id: GrantId) -> list[ScheduleId]:
        """In order of id."""
