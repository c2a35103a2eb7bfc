"""Grants in SQL; scopes hold no blank, so a blank parts them."""

from duly.domain.grants import Grant
from duly.domain.ids import GrantId, Owner, ScheduleId
from duly.domain.instants import Instant
from duly.storage.executor import Executor, Row


class SqlGrants:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, grant: Grant) -> None:
        await self._x.fetch("insert_user", id=grant.user_id, now=grant.created_at)
        await self._x.fetch(
            "insert_grant",
            id=grant.id,
            user=grant.user_id,
            account=grant.account_id,
            scopes=" ".join(grant.scopes),
            expires_at=grant.expires_at,
            created_at=grant.created_at,
        )

    async def get(self, grant_id: GrantId) -> Grant | None:
        for row in await self._x.fetch("grant_by_id", id=grant_id):
            return _grant_from_row(row)
        return None

    async def of_user(self, user: Owner | None) -> list[Grant]:
        if user is None:
            rows = await self._x.fetch("all_grants")
        else:
            rows = await self._x.fetch("grants_of_user", user=user)
        return [_grant_from_row(row) for row in rows]

    async def revoke(self, grant_id: GrantId, *, now: Instant) -> None:
        await self._x.fetch("revoke_grant", id=grant_id, now=now)

    async def touch(self, grant_id: GrantId, *, now: Instant) -> None:
        await self._x.fetch("touch_grant", id=grant_id, now=now)

    async def of_schedule(self, schedule_id: ScheduleId) -> Grant | None:
        for row in await self._x.fetch("grant_of_schedule", schedule_id=schedule_id):
            return _grant_from_row(row)
        return None

    async def of_launches(self, workflow: str, version: int) -> Grant | None:
        for row in await self._x.fetch("grant_of_launches", workflow=workflow, version=version):
            return _grant_from_row(row)
        return None

    async def launch_under(self, workflow: str, version: int, grant_id: GrantId) -> None:
        await self._x.fetch("launch_under", workflow=workflow, version=version, grant_id=grant_id)

    async def assign(self, schedule_id: ScheduleId, grant_id: GrantId | None) -> None:
        await self._x.fetch("assign_grant", schedule_id=schedule_id, grant_id=grant_id)

    async def active_schedules(self, grant_id: GrantId) -> list[ScheduleId]:
        return [row[0] for row in await self._x.fetch("active_schedules_of_grant", grant_id=grant_id)]


def _grant_from_row(row: Row) -> Grant:
    return Grant(
        id=row[0],
        user_id=row[1],
        account_id=row[2],
        scopes=tuple(row[3].split()),
        expires_at=row[4],
        revoked_at=row[5],
        created_at=row[6],
        last_used_at=row[7],
    )
