"""Groups in SQL."""

from collections.abc import Mapping, Sequence

from duly.domain.groups import Group, GroupMode, GroupStatus, Member, MemberState, Progress, member_of
from duly.domain.ids import GroupId, JobId, MemberId, Owner
from duly.domain.instants import Instant
from duly.domain.pools import PoolDraining, PoolMode, UnknownPool
from duly.storage.executor import Executor
from duly.storage.sql.group_rows import group_from_row, member_from_row, member_row
from duly.storage.sql.memberships import Memberships
from duly.storage.sql.rows import PAST_EVERY_ID, pool_from_row


class SqlGroups:
    __slots__ = ("_members", "_x")

    def __init__(self, executor: Executor) -> None:
        self._x = executor
        self._members = Memberships(executor)

    async def add(self, group: Group, members: Sequence[Member], *, position: int) -> bool:
        await self._check_pools(members)
        added = await self._x.fetch(
            "insert_group",
            id=group.id,
            owner=group.owner,
            name=group.name,
            mode=group.mode.value,
            stop_on_failure=int(group.stop_on_failure),
            webhook_url=group.webhook_url,
            size=group.size,
            now=group.created_at,
        )
        if not added:
            return False
        await self._x.each("insert_members", [member_row(member) for member in members])
        await self._start(group, members, group.created_at, position)
        return True

    async def _start(self, group: Group, members: Sequence[Member], now: Instant, position: int) -> None:
        """Puts all that is pending, or the first of it."""
        if group.mode is GroupMode.PARALLEL:
            await self._members.put(group, [(member, member.snapshot.payload()) for member in members], now, position)
            return
        if ended := await self._members.go_on(group, MemberState.COMPLETED, now, position):
            await self._members.close(group, ended, now)

    async def _check_pools(self, members: Sequence[Member]) -> None:
        """Held until commit: none can drain or go before its members are there."""
        ordered = {member.snapshot.new.pool for member in members}
        extra = {name for member in members for name in member.snapshot.new.resources}
        for name in sorted(ordered | extra):
            rows = await self._x.fetch("hold_pool", name=name)
            if not rows:
                raise UnknownPool(name)
            if name in ordered and pool_from_row(rows[0]).mode is PoolMode.DRAINING:
                raise PoolDraining(name)

    async def get(self, group_id: GroupId) -> Group | None:
        for row in await self._x.fetch("group_by_id", id=group_id):
            return group_from_row(row)
        return None

    async def lock(self, group_id: GroupId) -> Group | None:
        for row in await self._x.fetch("group_by_id_locked", id=group_id):
            return group_from_row(row)
        return None

    async def listed(
        self, owner: Owner | None, *, status: GroupStatus | None, before: GroupId | None, most: int
    ) -> list[Group]:
        whose = {} if owner is None else {"owner": owner}
        which = {} if status is None else {"status": status.value}
        statement = "groups_listed" + ("_of_owner" if whose else "") + ("_by_status" if which else "")
        rows = await self._x.fetch(statement, **whose, **which, before=before or PAST_EVERY_ID, most=most)
        return [group_from_row(row) for row in rows]

    async def members(self, group_id: GroupId, *, after: int = -1, most: int) -> list[Member]:
        rows = await self._x.fetch("members_of_group", group_id=group_id, after=after, most=most)
        return [member_from_row(row) for row in rows]

    async def member_of_chain(self, chain: JobId) -> MemberId | None:
        for (member,) in await self._x.fetch("member_of_chain", chain=chain):
            return MemberId(member)
        return None

    async def progress(self, group_id: GroupId) -> Progress:
        rows = await self._x.fetch("count_members", group_id=group_id)
        return Progress(counts={MemberState(state): count for state, count in rows})

    async def live_jobs(self, group_id: GroupId) -> list[JobId]:
        rows = await self._x.fetch("live_jobs_of_group", group_id=group_id)
        return sorted(JobId(job_id) for (job_id,) in rows)

    async def stop(self, group: Group, *, reason: str, now: Instant) -> Group:
        await self._x.fetch("ask_group_to_stop", id=group.id, reason=reason)
        (row,) = await self._x.fetch("group_by_id", id=group.id)
        asked = group_from_row(row)
        await self._members.close(asked, await self._members.end_pending(asked, reason, now), now)
        return asked

    async def reopen(self, group: Group, ids: Mapping[int, JobId], *, now: Instant, position: int) -> None:
        members = await self.members(group.id, most=group.size)
        again = [member for member in members if member.state in (MemberState.FAILED, MemberState.CANCELLED)]
        await self._check_pools(again)
        await self._x.each("reopen_members", [(member.id, ids[member.place]) for member in again])
        await self._x.fetch("reopen_group", id=group.id)
        await self._x.fetch("count_open", id=group.id)
        (row,) = await self._x.fetch("group_by_id", id=group.id)
        pending = [m for m in await self.members(group.id, most=group.size) if m.state is MemberState.PENDING]
        await self._start(group_from_row(row), pending, now, position)

    async def revive(self, member: MemberId) -> None:
        group_id, place = member_of(member)
        await self._x.fetch("revive_member", group_id=group_id, place=place)
        await self._x.fetch("revive_followers", group_id=group_id, place=place)
        await self._x.fetch("reopen_group", id=group_id)
        await self._x.fetch("count_open", id=group_id)

    async def prune(self, before: Instant, most: int) -> int:
        pruned = await self._x.fetch("prune_groups", before=before, most=most)
        for (group_id,) in pruned:
            await self._x.fetch("forget_members", group_id=group_id)
        return len(pruned)
