"""What follows for groups when a member's chain has ended, in the transaction that ends it."""

from collections.abc import Callable, Sequence
from typing import Any

from duly.domain.errors import InvalidInput
from duly.domain.groups import (
    Group,
    GroupMode,
    Member,
    MemberState,
    Outcome,
    Reference,
    references_of,
    resolved,
    status_of,
)
from duly.domain.ids import GroupId, JobId
from duly.domain.instants import Instant
from duly.domain.jobs import LONGEST_ERROR, Entry, JobState
from duly.domain.payloads import Payload, value_of
from duly.storage.executor import Executor, Row
from duly.storage.sql.group_rows import group_from_row, member_from_row
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.origins import SqlOrigins
from duly.storage.sql.rows import entry_row
from duly.storage.sql.topics import DUE, pool_topic

Put = tuple[Member, Payload]


class Memberships:
    """Groups are locked after jobs and in order of id, so that no two who end members wait for each other."""

    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def end(self, jobs: Sequence[JobId], now: Instant) -> None:
        """Members whose chains have ended with these jobs."""
        rows = await self._x.each("end_members", [(job_id,) for job_id in jobs])
        ended: dict[GroupId, list[MemberState]] = {}
        for group_id, _, state in rows:
            ended.setdefault(group_id, []).append(MemberState(state))
        for group_id, states in sorted(ended.items()):
            (row,) = await self._x.fetch("group_by_id_locked", id=group_id)
            group = group_from_row(row)
            count = len(states)
            if group.mode is GroupMode.SEQUENTIAL and group.cancel_reason is None:
                count += await self.go_on(group, states[-1], now, int(now))
            await self.close(group, count, now)

    async def close(self, group: Group, ended: int, now: Instant) -> None:
        """So many members less are open; the group ends with the last."""
        ((still_open,),) = await self._x.fetch("close_members", id=group.id, ended=ended)
        if still_open == 0:
            counts = {MemberState(s): n for s, n in await self._x.fetch("count_members", group_id=group.id)}
            status = status_of(counts, cancelled=group.cancel_reason is not None)
            await self._x.fetch("settle_group", id=group.id, status=status.value, now=now)

    async def go_on(self, group: Group, state: MemberState, now: Instant, position: int) -> int:
        """Puts what comes after a member that ended so, or cancels it; answers how many members ended by that."""
        ended = 0
        reason = group.stops_after(state)
        while reason is None:
            for row in await self._x.fetch("next_pending", group_id=group.id):
                member = member_from_row(row)
                if (problem := await self._put_next(group, member, now, position)) is None:
                    return ended
                await self._fail(member, problem, now)
                ended += 1
                reason = group.stops_after(MemberState.FAILED)
                break
            else:
                return ended
        return ended + await self.end_pending(group, reason, now)

    async def end_pending(self, group: Group, reason: str, now: Instant) -> int:
        return len(await self._x.fetch("end_pending", group_id=group.id, reason=reason, now=now))

    async def put(self, group: Group, puts: Sequence[Put], now: Instant, position: int) -> set[str]:
        """From a position on. Their pools were checked when the group was made; answers the ids that were added."""
        entries = [
            Entry(member.job_id, member.snapshot.new, payload, now, position + index, member=member.id)
            for index, (member, payload) in enumerate(puts)
        ]
        added = {row[0] for row in await self._x.each("insert_jobs", [_row(entry) for entry in entries])}
        put = [member for member, _ in puts if member.job_id in added]
        await self._x.each("set_members_live", [(member.id,) for member in put])
        await SqlOrigins(self._x).save([(m.job_id, m.snapshot.origin(group.owner)) for m in put])
        if lanes := {entry.new.lane for entry in entries if entry.id in added and entry.new.lane and entry.is_due}:
            await Lanes(self._x).join(lanes)
        for entry in entries:
            self._x.wake(pool_topic(entry.new.pool) if entry.is_due else DUE)
        return added

    async def _put_next(self, group: Group, member: Member, now: Instant, position: int) -> str | None:
        """Why it cannot be put, if it cannot."""
        params = value_of(member.snapshot.new.payload)
        try:
            payload = member.snapshot.payload(resolved(params, await self._finder(member, params)))
        except InvalidInput as error:
            return str(error)
        if not await self.put(group, [(member, payload)], now, position):
            return f"pool {member.snapshot.new.pool!r} takes no jobs"
        return None

    async def _finder(self, member: Member, params: Any) -> Callable[[Reference, str], Any]:
        """Looks up what members before this one left, each once."""
        asked = references_of(params)
        names: dict[str, int] = dict(await self._x.fetch("member_places", group_id=member.group_id)) if asked else {}
        outcomes: dict[int, Outcome | None] = {}
        for field, reference in asked:
            place = reference.place(names, before=member.place, field=field)
            if place not in outcomes:
                outcomes[place] = await self._outcome(member.group_id, place)

        def find(reference: Reference, field: str) -> Any:
            place = reference.place(names, before=member.place, field=field)
            return reference.find(outcomes[place], field=field)

        return find

    async def _outcome(self, group_id: GroupId, place: int) -> Outcome | None:
        for row in await self._x.fetch("member_at", group_id=group_id, place=place):
            member = member_from_row(row)
            for (result,) in await self._x.fetch("result_of", id=member.last_job):
                files = await self._x.fetch("artifacts_of", job_id=member.last_job)
                named = [{"name": name, "size": size, "sha256": sha256} for _, name, size, sha256 in files]
                return Outcome(member.state, result, named)
        return None

    async def _fail(self, member: Member, problem: str, now: Instant) -> None:
        reason = problem[:LONGEST_ERROR]
        await self._x.fetch("fail_pending", group_id=member.group_id, place=member.place, reason=reason, now=now)


def _row(entry: Entry) -> Row:
    if not entry.is_due:
        return entry_row(entry, JobState.SCHEDULED.value)
    return entry_row(entry, (JobState.WAITING if entry.new.lane else JobState.READY).value)
