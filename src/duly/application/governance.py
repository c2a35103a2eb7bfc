"""Makes system schedules what a file says, all of them or none, and says what was done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from duly.application.accounts import CURRENCY
from duly.application.batch import Drawn
from duly.application.schedule_checks import require_pool
from duly.application.schedules import ACTIVE, Changed, Changes, Schedules, is_over, is_so
from duly.domain.billing import Account, PaymentRequired, VirtualKey
from duly.domain.declarations import Declaration
from duly.domain.errors import InvalidInput
from duly.domain.governance import (
    ACCOUNT,
    KEY,
    MOST_GOVERNED,
    PROGRAM,
    REMOVED,
    SWITCHED_OFF,
    Fate,
    GovernanceTaken,
    Governed,
    Synced,
)
from duly.domain.grants import Grant
from duly.domain.graph_targets import graph_target_of
from duly.domain.ids import GrantId, ScheduleId
from duly.domain.instants import Instant
from duly.domain.payloads import Payload, json_of, value_of
from duly.domain.pools import UnknownPool
from duly.domain.schedules import SYSTEM, Schedule, ScheduleState, new_schedule
from duly.ports.storage import Transaction

_UNDRAWN = GrantId("drawn when it is made")
_OURS = (REMOVED, SWITCHED_OFF)


@dataclass(frozen=True, slots=True)
class Governance:
    schedules: Schedules

    async def sync(self, governed: Sequence[Governed], *, dry_run: bool = False) -> Sequence[Synced]:
        """In order of id. A dry run says what would be done; anything that is wrong leaves everything as it was."""
        wanted = {each.id: each for each in governed}
        if len(governed) > MOST_GOVERNED:
            raise InvalidInput("schedules", f"has {len(governed)} of them", fix=f"use at most {MOST_GOVERNED}")
        if len(wanted) < len(governed):
            raise InvalidInput("schedules", "names one twice", fix="give each a name of its own")
        storage = self.schedules.storage
        sync = _Sync(self.schedules, wanted, is_dry=dry_run, now=storage.clock.now())
        try:
            lines = await (storage.read(sync.work) if dry_run else storage.transact(sync.work))
        except PaymentRequired:
            if not dry_run:  # the refusal says how to credit the account: it has to be there
                await storage.transact(sync.open_account)
            raise
        for _, changed in sync.made.values():
            self.schedules.told(changed)
        return lines


@dataclass(slots=True)
class _Sync:
    """`made` is what an earlier run of the same work wrote: if it is still so, its answer was lost."""

    schedules: Schedules
    wanted: Mapping[ScheduleId, Governed]
    is_dry: bool
    now: Instant
    made: dict[ScheduleId, tuple[Synced, Changed]] = field(default_factory=dict)
    _drawn: dict[ScheduleId, tuple[Drawn, GrantId]] = field(default_factory=dict)

    async def work(self, tx: Transaction) -> list[Synced]:
        """In order of id, so that two syncs never wait for each other; those that grant take turns."""
        if not self.is_dry and any(each.graph_id is not None for each in self.wanted.values()):
            await tx.accounts.lock_user(SYSTEM, now=self.now)
        known = [each.schedule_id for each in await tx.declarations.of_program(SYSTEM, PROGRAM)]
        lines = [await self._line(tx, schedule_id) for schedule_id in sorted({*self.wanted, *known})]
        return [line for line in lines if line is not None]

    async def _line(self, tx: Transaction, schedule_id: ScheduleId) -> Synced | None:
        schedule = await (tx.schedules.get if self.is_dry else tx.schedules.lock)(schedule_id)
        if schedule_id in self.made and _is_left(schedule, self.made[schedule_id][1]):
            return self.made[schedule_id][0]
        self.made.pop(schedule_id, None)
        governed = self.wanted.get(schedule_id)
        if governed is None:
            return await self._removed(tx, schedule)
        await self._require_ours(tx, schedule_id, schedule)
        return await self._made_so(tx, governed, schedule)

    async def _require_ours(self, tx: Transaction, schedule_id: ScheduleId, schedule: Schedule | None) -> None:
        declaration = await tx.declarations.get(schedule_id)
        if (schedule is not None and schedule.owner != SYSTEM) or declaration not in (None, _declaration(schedule_id)):
            raise GovernanceTaken(schedule_id)

    async def _made_so(self, tx: Transaction, governed: Governed, schedule: Schedule | None) -> Synced:
        grant_id = await self._grant_id_of(tx, governed, schedule)
        is_there = schedule is not None and schedule.state is not ScheduleState.DELETED
        changes = self._changes(governed, schedule if is_there else None, grant_id)
        if schedule is not None and is_there and is_so(schedule, changes):
            if not self.is_dry:
                await tx.declarations.save(_declaration(schedule.id))
            held = _is_held(schedule, governed)
            return Synced(id=schedule.id, fate=Fate.UNCHANGED, before=schedule, after=schedule, is_held=held)
        drawn, _ = self._draw(governed.id)
        await self._require_possible(tx, governed, drawn)
        if self.is_dry:
            await self._require_payable(tx, governed)
        else:
            await self._granted(tx, governed, grant_id)
        changed = await self._written(tx, governed, schedule, changes)
        if changed is None:  # another sync was faster, and has committed
            return await self._made_so(tx, governed, await tx.schedules.lock(governed.id))
        line = Synced(
            id=governed.id,
            fate=Fate.UPDATED if is_there else Fate.CREATED,
            before=schedule if is_there else None,
            after=changed.schedule,
            is_held=_is_held(changed.schedule, governed),
        )
        if not self.is_dry:
            await tx.declarations.save(_declaration(governed.id))
            await tx.grants.assign(governed.id, grant_id)
            self.made[governed.id] = (line, changed)
        return line

    async def _written(
        self, tx: Transaction, governed: Governed, schedule: Schedule | None, changes: Changes
    ) -> Changed | None:
        drawn, _ = self._draw(governed.id)
        if schedule is None:
            new = _new(governed, changes, drawn)
            return Changed(new) if self.is_dry or await self.schedules.add_in(tx, new) else None
        if self.is_dry:
            return Changed(schedule.changed(at=drawn.now, **changes))
        return await self.schedules.revise_in(tx, schedule, changes, drawn)

    async def _removed(self, tx: Transaction, schedule: Schedule | None) -> Synced | None:
        if schedule is None or schedule.state in (ScheduleState.PAUSED, ScheduleState.DELETED):
            return None
        changes = _paused(REMOVED)
        drawn, _ = self._draw(schedule.id)
        if self.is_dry:
            changed = Changed(schedule.changed(at=drawn.now, **changes))
        else:
            changed = await self.schedules.revise_in(tx, schedule, changes, drawn)
        line = Synced(id=schedule.id, fate=Fate.PAUSED, before=schedule, after=changed.schedule)
        if not self.is_dry:
            self.made[schedule.id] = (line, changed)
        return line

    def _changes(self, governed: Governed, schedule: Schedule | None, grant_id: GrantId | None) -> Changes:
        """`schedule` is none if it is to be created."""
        payload = governed.target.payload
        if grant_id is not None:
            payload = json_of({**value_of(payload), "grant_id": grant_id}, field="input")
        if schedule is not None and _is_alike(schedule.target.payload, payload):
            payload = schedule.target.payload  # names in another order say the same
        return {
            "cadence": governed.cadence,
            "target": replace(governed.target, payload=payload),
            "policies": self.schedules.defaults if governed.policies is None else governed.policies,
            **_state(governed, schedule),
        }

    async def _grant_id_of(self, tx: Transaction, governed: Governed, schedule: Schedule | None) -> GrantId | None:
        """The schedule's own while it serves; else the one that was drawn for it."""
        if governed.graph_id is None:
            return None
        drawn, grant_id = self._draw(governed.id)
        known = None if schedule is None else await tx.grants.of_schedule(schedule.id)
        if known is not None and _serves(known, governed.graph_id, drawn):
            return known.id
        return _UNDRAWN if self.is_dry else grant_id

    async def _granted(self, tx: Transaction, governed: Governed, grant_id: GrantId | None) -> None:
        """Before the schedule that names it: a new one, at the cost of the system's account, opened if need be."""
        drawn, drawn_id = self._draw(governed.id)
        now = drawn.now
        if grant_id == drawn_id:
            await self.open_account(tx)
            scopes = (f"graph:execute:{governed.graph_id}",)
            await tx.grants.add(Grant(id=drawn_id, user_id=SYSTEM, account_id=ACCOUNT, scopes=scopes, created_at=now))

    async def open_account(self, tx: Transaction) -> None:
        key = VirtualKey(id=KEY, account_id=ACCOUNT, is_default=True, created_at=self.now)
        await tx.accounts.add(_account(self.now), key)

    async def _require_payable(self, tx: Transaction, governed: Governed) -> None:
        """What saving it would refuse; a dry run has neither grant nor account to be refused by."""
        asked = graph_target_of(governed.target)
        if asked is not None and asked.model is not None:
            account = await tx.accounts.get(ACCOUNT) or _account(self.now)
            self.schedules.graphs.require_payable(asked.model, account)

    async def _require_possible(self, tx: Transaction, governed: Governed, drawn: Drawn) -> None:
        if is_over(governed.cadence, drawn.now):
            raise InvalidInput(
                f"schedules.{governed.name}", "has no fire left", fix="choose a later time, or remove it"
            )
        try:
            await require_pool(tx, governed.target.pool)
        except UnknownPool as unknown:
            where = f"schedules.{governed.name}.pool"
            raise InvalidInput(where, str(unknown), fix="make it with `duly pool set`, or name another") from None

    def _draw(self, schedule_id: ScheduleId) -> tuple[Drawn, GrantId]:
        """Once for each, however often the work is run."""
        if schedule_id not in self._drawn:
            self._drawn[schedule_id] = (self.schedules.draw(), GrantId(self.schedules.dice.new_id("grant")))
        return self._drawn[schedule_id]


def _account(now: Instant) -> Account:
    return Account(id=ACCOUNT, owner=SYSTEM, name="system", currency=CURRENCY, created_at=now)


def _new(governed: Governed, changes: Changes, drawn: Drawn) -> Schedule:
    plan = {name: changes[name] for name in ("cadence", "target", "policies")}
    new = new_schedule(schedule_id=governed.id, owner=SYSTEM, now=drawn.now, **plan)
    return replace(new, state=changes["state"], state_reason=changes["state_reason"]).planned()


def _state(governed: Governed, schedule: Schedule | None) -> Changes:
    """A pause by hand stays unless the file says otherwise; one that a sync made ends with its reason."""
    is_paused = schedule is not None and schedule.state is ScheduleState.PAUSED
    if governed.enabled is False:
        return {} if is_paused else _paused(SWITCHED_OFF)
    is_ours = schedule is None or not is_paused or schedule.state_reason in _OURS
    return ACTIVE if governed.enabled or is_ours else {}


def _is_held(schedule: Schedule, governed: Governed) -> bool:
    return schedule.state is ScheduleState.PAUSED and governed.enabled is not False


def _paused(reason: str) -> Changes:
    return {"state": ScheduleState.PAUSED, "state_reason": reason}


def _is_alike(one: Payload, other: Payload) -> bool:
    return one == other or value_of(one) == value_of(other)


def _serves(grant: Grant, graph_id: str, drawn: Drawn) -> bool:
    is_over_ = grant.revoked_at is not None or (grant.expires_at is not None and grant.expires_at <= drawn.now)
    return grant.covers(graph_id) and not is_over_


def _declaration(schedule_id: ScheduleId) -> Declaration:
    return Declaration(schedule_id=schedule_id, owner=SYSTEM, program=PROGRAM)


def _is_left(schedule: Schedule | None, changed: Changed) -> bool:
    made = changed.schedule
    return schedule is not None and (schedule.revision, schedule.updated_at) == (made.revision, made.updated_at)
