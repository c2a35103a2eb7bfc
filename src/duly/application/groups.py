"""What callers do with groups. `owner` is the caller; an operator names none."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

from duly.application.estimates import estimate_in
from duly.application.pace import Pace
from duly.application.places import Places
from duly.application.templates import template_known
from duly.application.webhooks import EndpointBook, add_endpoint
from duly.domain.amounts import Amount
from duly.domain.errors import InvalidInput
from duly.domain.estimates import Estimate
from duly.domain.groups import (
    Group,
    GroupAlreadyEnded,
    GroupMode,
    GroupRunning,
    GroupStatus,
    Member,
    NewGroup,
    NewMember,
    Progress,
    UnknownGroup,
    references_of,
)
from duly.domain.ids import GroupId, JobId, Owner
from duly.domain.instants import Instant
from duly.domain.jobs import JobAlreadyFinished, UnknownJob
from duly.domain.payloads import value_of
from duly.domain.templates import Snapshot
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.prices import Prices
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000
PRUNE_BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What a retry of a group touches: its members that failed or were cancelled, and what they will cost."""

    group: Group
    members: tuple[Member, ...]
    cost: Estimate


@dataclass(frozen=True, slots=True)
class Groups:
    storage: Storage
    dice: Dice
    pace: Pace
    endpoints: EndpointBook
    _places: Places = field(default_factory=Places)
    prices: Prices | None = None

    async def create(self, asked: NewGroup, *, owner: str, group_id: str | None = None) -> Group:
        """All members are written, and the first or all of them put, in one transaction. An id makes it repeatable."""
        now, whose = self.storage.clock.now(), Owner(text_of(owner, field="owner"))
        name = GroupId(self.dice.new_id("grp") if group_id is None else text_of(group_id, field="group_id"))
        ids = [JobId(self.dice.new_id("job")) for _ in asked.members]
        position = self._places.take(now, len(ids))
        group = Group(
            id=name,
            owner=whose,
            name=asked.name,
            mode=asked.mode,
            stop_on_failure=bool(asked.stop_on_failure),
            webhook_url=asked.webhook_url,
            size=len(ids),
            open=len(ids),
            created_at=now,
        )
        endpoint = self.endpoints.named(asked.webhook_url, owner=whose, now=now)

        async def work(tx: Transaction) -> Group:
            if (found := await tx.groups.get(name)) is not None:
                return _owned(found, name, whose)
            await add_endpoint(tx, endpoint)
            await tx.groups.add(group, await _members(tx, group, asked.members, ids), position=position)
            return _owned(await tx.groups.get(name), name, whose)

        return await self.storage.transact(work)

    async def get(self, group_id: str, *, owner: str | None) -> Group:
        return await self.storage.read(lambda tx: _known(tx, group_id, owner))

    async def members(self, group_id: str, *, owner: str | None, after: int = -1, most: int = 100) -> Sequence[Member]:
        """In their places; `after` is the last place seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)

        async def work(tx: Transaction) -> Sequence[Member]:
            return await tx.groups.members((await _known(tx, group_id, owner)).id, after=after, most=most)

        return await self.storage.read(work)

    async def progress(self, group_id: str, *, owner: str | None) -> Progress:
        async def work(tx: Transaction) -> Progress:
            return await tx.groups.progress((await _known(tx, group_id, owner)).id)

        return await self.storage.read(work)

    async def list(
        self, *, owner: str | None, status: GroupStatus | None = None, before: str | None = None, most: int = 100
    ) -> Sequence[Group]:
        """The last made first; `before` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        last = None if before is None else GroupId(text_of(before, field="before"))

        async def work(tx: Transaction) -> Sequence[Group]:
            return await tx.groups.listed(whose, status=status, before=last, most=most)

        return await self.storage.read(work)

    async def cancel(self, group_id: str, *, owner: str | None, reason: str) -> Group:
        """What has not started ends; what runs is asked to stop, and loses its claim if it does not in time."""
        text_of(reason, field="reason", longest=1_000)
        now = self.storage.clock.now()
        earlier_runs = count()

        async def work(tx: Transaction) -> Group:
            is_rerun = next(earlier_runs) > 0
            group = await _known(tx, group_id, owner)
            # Before the group, as whoever ends one of them does; any that is put meanwhile is found below.
            for job_id in await tx.groups.live_jobs(group.id):
                with suppress(UnknownJob, JobAlreadyFinished):
                    await tx.jobs.lock(job_id)
            group = _owned(await tx.groups.lock(group.id), group.id, None)
            if group.status is not GroupStatus.RUNNING:
                if is_rerun and (group.cancel_reason, group.ended_at) == (reason, now):
                    return group
                raise GroupAlreadyEnded(group.id, group.status)
            await tx.groups.stop(group, reason=reason, now=now)
            await self._cancel_live(tx, group.id, reason, now)
            return _owned(await tx.groups.get(group.id), group.id, None)

        return await self.storage.transact(work)

    async def _cancel_live(self, tx: Transaction, group_id: GroupId, reason: str, now: Instant) -> None:
        """Round by round: one that was not locked before may have failed meanwhile, and be tried again already."""
        asked: set[JobId] = set()
        while left := set(await tx.groups.live_jobs(group_id)) - asked:
            for job_id in sorted(left):
                asked.add(job_id)
                with suppress(UnknownJob, JobAlreadyFinished):
                    if not await tx.jobs.cancel(job_id, reason=reason, now=now):
                        await tx.ledger.revoke_later(job_id, at=Instant(now + self.pace.stop_within), reason=reason)

    async def preview_retry(self, group_id: str, *, owner: str | None) -> Again:
        """Exactly what `retry` would try again, and at what cost."""

        async def work(tx: Transaction) -> Again:
            return await self._again(tx, await _known(tx, group_id, owner))

        return await self.storage.read(work)

    async def _again(self, tx: Transaction, group: Group) -> Again:
        if group.status is GroupStatus.RUNNING:
            raise GroupRunning(group.id)
        if group.status is GroupStatus.COMPLETED:
            raise GroupAlreadyEnded(group.id, group.status)
        members = await tx.groups.members(group.id, most=group.size)
        again = tuple(each for each in members if not (each.state.is_open or each.state.ended_well))
        works = [(each.snapshot.new.kind, each.snapshot.new.payload) for each in again]
        return Again(group=group, members=again, cost=await estimate_in(tx, works, self.prices, owner=group.owner))

    async def retry(
        self, group_id: str, *, owner: str | None, cap: int | None = None, max_cost: Amount | None = None
    ) -> Group:
        """New chains for the members that failed or were cancelled; the group is RUNNING again.

        Refused if there are more than `cap`, or if more than `max_cost` would be held for them.
        """
        now = self.storage.clock.now()
        ids = await self._ids_for(group_id, owner)
        position = self._places.take(now, len(ids))

        async def work(tx: Transaction) -> Group:
            group = _owned(await tx.groups.lock(GroupId(group_id)), group_id, owner)
            if group.status is GroupStatus.RUNNING:
                members = await tx.groups.members(group.id, most=group.size)
                if any(member.job_id == ids[member.place] for member in members):
                    return group  # run again after a lost answer
            again = await self._again(tx, group)
            if cap is not None and len(again.members) > cap:
                fix = "raise the cap, or retry members one by one"
                raise InvalidInput("cap", f"{len(again.members)} members failed or were cancelled", fix=fix)
            again.cost.require_within(max_cost)
            await tx.groups.reopen(group, ids, now=now, position=position)
            return _owned(await tx.groups.get(group.id), group.id, None)

        return await self.storage.transact(work)

    async def _ids_for(self, group_id: str, owner: str | None) -> Mapping[int, JobId]:
        """Drawn before the transaction, one for each place."""
        size = (await self.get(group_id, owner=owner)).size
        return {place: JobId(self.dice.new_id("job")) for place in range(size)}

    async def prune(self, *, before: Instant) -> int:
        """Forgets groups that ended before an instant, a few in each transaction; answers how many."""
        pruned = 0

        async def work(tx: Transaction) -> int:
            return await tx.groups.prune(before, PRUNE_BATCH)

        while found := await self.storage.transact(work):
            pruned += found
        return pruned


async def _members(tx: Transaction, group: Group, asked: Sequence[NewMember], ids: Sequence[JobId]) -> list[Member]:
    names = {member.name: place for place, member in enumerate(asked) if member.name is not None}
    members = []
    for place, (member, job_id) in enumerate(zip(asked, ids, strict=True)):
        try:
            snapshot = await _snapshot(tx, member, group.owner)
            _check_params(snapshot, group.mode, names, place)
        except InvalidInput as error:
            where = f"members[{place}].{error.field}"
            raise InvalidInput(where, error.reason, fix=error.fix, position=error.position) from None
        members.append(Member(group_id=group.id, place=place, name=member.name, snapshot=snapshot, job_id=job_id))
    return members


async def _snapshot(tx: Transaction, member: NewMember, owner: Owner) -> Snapshot:
    if member.job is not None:
        return Snapshot(new=replace(member.job, params=value_of(member.job.payload)))
    return (await template_known(tx, str(member.template), owner)).snapshot(member.params)


def _check_params(snapshot: Snapshot, mode: GroupMode, names: Mapping[str, int], place: int) -> None:
    """Params that refer to others are checked when those have ended; here only that they refer to members before."""
    found = references_of(value_of(snapshot.new.payload)) if mode is GroupMode.SEQUENTIAL else []
    for where, reference in found:
        reference.place(names, before=place, field=where)
    if not found:
        snapshot.payload()


async def _known(tx: Transaction, group_id: str, owner: str | None) -> Group:
    return _owned(await tx.groups.get(GroupId(text_of(group_id, field="id"))), group_id, owner)


def _owned(group: Group | None, group_id: str, owner: str | None) -> Group:
    if group is None or owner not in (None, group.owner):
        raise UnknownGroup(GroupId(group_id))
    return group
