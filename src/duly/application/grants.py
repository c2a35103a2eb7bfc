"""Who may run which graph at whose cost: grants are made, checked, assigned to schedules and revoked."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from duly.application.accounts import account_id_of, account_in
from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.executions import GRAPH_RUN
from duly.domain.grants import Grant, UnknownGrant, graph_id_of, scopes_of
from duly.domain.ids import GrantId, Owner, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.schedules import LONGEST_ID, Schedule, UnknownSchedule
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

TOUCHED_EVERY = Micros(60 * SECOND)
_LAST_INSTANT = 253_402_300_799_000_000


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """Which schedules could not run any more without the grant."""

    grant: Grant
    schedules: Sequence[ScheduleId]


@dataclass(frozen=True, slots=True)
class Grants:
    """`owner` is the caller, who sees only its own; an operator names none."""

    storage: Storage
    dice: Dice

    async def create(
        self,
        *,
        owner: str | None,
        account_id: str,
        scopes: Iterable[str],
        expires_at: Instant | None = None,
        user_id: str | None = None,
        grant_id: str | None = None,
    ) -> Grant:
        """For the caller itself; an operator may name somebody else, who is the account's owner unless named.

        An id that was drawn before is that grant, made once.
        """
        known, now = account_id_of(account_id), self.storage.clock.now()
        drawn = GrantId(self.dice.new_id("grant") if grant_id is None else grant_id)
        user = None if user_id is None else text_of(user_id, field="user_id")
        if owner is not None and user not in (None, owner):
            raise InvalidInput("user_id", "is somebody else", fix="leave it out")
        granted, until = scopes_of(scopes), _later(expires_at, now)

        async def work(tx: Transaction) -> Grant:
            account = await account_in(tx, known, owner)
            grant = Grant(
                id=drawn,
                user_id=Owner(user or account.owner),
                account_id=known,
                scopes=granted,
                created_at=now,
                expires_at=until,
            )
            await tx.grants.add(grant)
            return await _grant_in(tx, drawn, grant.user_id)

        return await self.storage.transact(work)

    async def get(self, grant_id: str, *, owner: str | None) -> Grant:
        known = _grant_id_of(grant_id)
        return await self.storage.read(lambda tx: _grant_in(tx, known, owner))

    async def list(self, *, owner: str | None) -> Sequence[Grant]:
        """In order of id, revoked ones too."""
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        return await self.storage.read(lambda tx: tx.grants.of_user(whose))

    async def validate(self, grant_id: str, *, graph_id: str | None = None, owner: str | None = None) -> Grant:
        """The grant, if it is good, covers the graph that is named, and is the owner's that is named."""
        known, now = _grant_id_of(grant_id), self.storage.clock.now()
        graph = None if graph_id is None else graph_id_of(graph_id)
        grant = await self.storage.read(lambda tx: _grant_in(tx, known, owner))
        grant.require_good(now)
        if graph is not None:
            grant.require_covers(graph)
        await self._touch(grant, now)
        return grant

    async def _touch(self, grant: Grant, now: Instant) -> None:
        """When it was used is good to know, and not worth refusing anybody for."""
        if grant.last_used_at is not None and now - grant.last_used_at < TOUCHED_EVERY:
            return

        async def work(tx: Transaction) -> None:
            await tx.grants.touch(grant.id, now=now)

        with suppress(Unavailable):
            await self.storage.transact(work, single=True)

    async def revoke(self, grant_id: str, *, owner: str | None) -> Grant:
        """It stays on the list with the time; revoking it again changes nothing."""
        known, now = _grant_id_of(grant_id), self.storage.clock.now()

        async def work(tx: Transaction) -> Grant:
            await _grant_in(tx, known, owner)
            await tx.grants.revoke(known, now=now)
            return await _grant_in(tx, known, owner)

        return await self.storage.transact(work)

    async def assign(self, schedule_id: str, grant_id: str | None, *, owner: str | None) -> Grant | None:
        """The schedule's runs act under this grant from now on, which is its owner's; or under none."""
        now = self.storage.clock.now()
        known = None if grant_id is None else _grant_id_of(grant_id)

        async def work(tx: Transaction) -> Grant | None:
            schedule = await _schedule_in(tx, schedule_id, owner)
            if schedule.target.kind == GRAPH_RUN:
                why = "runs a graph, and its target names its grant"
                raise InvalidInput("schedule_id", why, fix="edit the grant_id of its params")
            grant = None if known is None else await _grant_in(tx, known, schedule.owner)
            if grant is not None:
                grant.require_good(now)
            await tx.grants.assign(schedule.id, known)
            return grant

        return await self.storage.transact(work)

    async def of_schedule(self, schedule_id: str, *, owner: str | None) -> Grant | None:
        async def work(tx: Transaction) -> Grant | None:
            return await tx.grants.of_schedule((await _schedule_in(tx, schedule_id, owner)).id)

        return await self.storage.read(work)

    async def blast_radius(self, grant_id: str, *, owner: str | None) -> BlastRadius:
        """Which active schedules stop if it is revoked."""
        known = _grant_id_of(grant_id)

        async def work(tx: Transaction) -> BlastRadius:
            grant = await _grant_in(tx, known, owner)
            return BlastRadius(grant, await tx.grants.active_schedules(known))

        return await self.storage.read(work)


def _grant_id_of(value: str) -> GrantId:
    return GrantId(text_of(value, field="grant_id"))


async def _grant_in(tx: Transaction, grant_id: GrantId, owner: str | None) -> Grant:
    """Somebody else's does not exist."""
    grant = await tx.grants.get(grant_id)
    if grant is None or owner not in (None, grant.user_id):
        raise UnknownGrant(grant_id)
    return grant


async def _schedule_in(tx: Transaction, schedule_id: str, owner: str | None) -> Schedule:
    schedule = await tx.schedules.get(ScheduleId(text_of(schedule_id, field="schedule_id", longest=LONGEST_ID)))
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(schedule_id)
    return schedule


def _later(expires_at: Instant | None, now: Instant) -> Instant | None:
    if expires_at is None:
        return None
    whole_number_of(expires_at, field="expires_at", least=0, most=_LAST_INSTANT)
    if expires_at <= now:
        raise InvalidInput("expires_at", "has passed", fix="choose a later instant, or none")
    return expires_at
