"""What owners do with schedules: define, edit, pause, resume, delete, look, run now, backfill.

Every change first opens what is due until now, then appends a revision. `owner` is the caller, who sees only its own;
an operator names none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from duly.application.batch import MOST_ROWS, Batch, Drawn, draw, refusal_of
from duly.application.estimates import estimate_in
from duly.application.graph_grants import GraphGrants, assign_in
from duly.application.openings import open_before_change, outages_until
from duly.application.pace import Pace
from duly.application.places import Places
from duly.application.stopping import end_run
from duly.application.template_targets import snapshot_for
from duly.domain.amounts import Amount
from duly.domain.backfills import MOST_BACKFILLED, Backfill, backfill_of
from duly.domain.cadence import Cadence
from duly.domain.decisions import Decision
from duly.domain.errors import InvalidInput
from duly.domain.estimates import Estimate
from duly.domain.graph_targets import is_alike
from duly.domain.ids import Owner, PoolName, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import Policies
from duly.domain.runs import Run, RunKind
from duly.domain.schedules import (
    LONGEST_ID,
    Fire,
    Revision,
    Schedule,
    ScheduleChanged,
    ScheduleExists,
    ScheduleState,
    Target,
    UnknownSchedule,
    new_schedule,
    require_fires,
)
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction
from duly.ports.telemetry import Telemetry

LONGEST_KEY = 64
_MOST_LISTED = 1_000
_MOST_NUMBERED = 2**63 - 1

Changes = Mapping[str, Any]

_IN_STATE: Mapping[ScheduleState, Changes] = {state: {"state": state, "state_reason": None} for state in ScheduleState}
_PLAN = frozenset({"cadence", "target", "policies"})
ACTIVE = _IN_STATE[ScheduleState.ACTIVE]
DELETED = _IN_STATE[ScheduleState.DELETED]
PAUSED = _IN_STATE[ScheduleState.PAUSED]


@dataclass(frozen=True, slots=True)
class Changed:
    """A schedule after a change, and what had to be decided before it."""

    schedule: Schedule
    decisions: Sequence[Decision] = ()


@dataclass(frozen=True, slots=True)
class Schedules:
    """`defaults` are the policies of a schedule that names none."""

    storage: Storage
    dice: Dice
    places: Places
    pace: Pace
    defaults: Policies
    telemetry: Telemetry
    graphs: GraphGrants

    async def create(
        self,
        *,
        owner: str,
        cadence: Cadence,
        target: Target,
        policies: Policies | None = None,
        schedule_id: str | None = None,
        enabled: bool = True,
    ) -> Schedule:
        """An id that was deleted goes on where it ended: with its next revision, and nothing opened twice."""
        schedule_id = self.dice.new_id("sch") if schedule_id is None else schedule_id
        return await self._define(schedule_id, owner, cadence, target, policies, anew=True, enabled=enabled)

    async def upsert(
        self, schedule_id: str, *, owner: str, cadence: Cadence, target: Target, policies: Policies | None = None
    ) -> Schedule:
        """Creates it, or makes it this and active; what is so already stays at its revision, even if it is over."""
        return await self._define(schedule_id, owner, cadence, target, policies, anew=False)

    async def _define(
        self,
        schedule_id: str,
        owner: str,
        cadence: Cadence,
        target: Target,
        policies: Policies | None,
        *,
        anew: bool,
        enabled: bool = True,
    ) -> Schedule:
        drawn = self.draw()
        policies = self.defaults if policies is None else policies
        _require_plan(target=target, policies=policies)
        changes = {"cadence": cadence, "target": target, "policies": policies, **_switched(enabled)}
        if not anew and is_over(cadence, drawn.now) and (over := await self._so_already(schedule_id, owner, changes)):
            return over
        new = new_schedule(
            schedule_id=schedule_id, owner=owner, cadence=cadence, target=target, policies=policies, now=drawn.now
        )
        new = new if enabled else replace(new, state=ScheduleState.PAUSED).planned()
        earlier_runs, granting = count(), self.graphs.granting(target, drawn.now)

        async def work(tx: Transaction) -> Changed:
            is_rerun = next(earlier_runs) > 0
            meant = await granting.target_in(tx, new.id, new.owner) or target
            if await self.add_in(tx, granted := replace(new, target=meant)):
                return Changed(granted)
            schedule = await tx.schedules.lock(new.id)
            if schedule is None or schedule.owner != new.owner:
                raise ScheduleExists(new.id) if anew else UnknownSchedule(new.id)
            is_ours = is_rerun and schedule.updated_at == drawn.now
            if anew and schedule.state is not ScheduleState.DELETED and not is_ours:
                raise ScheduleExists(new.id)
            return await self.revise_in(tx, schedule, {**changes, "target": meant}, drawn)

        return self.told(await self.graphs.transact(self.storage, work))

    async def _so_already(self, schedule_id: str, owner: str, changes: Changes) -> Schedule | None:
        known = ScheduleId(text_of(schedule_id, field="id", longest=LONGEST_ID))
        schedule = await self.storage.read(lambda tx: tx.schedules.get(known))
        if schedule is None or schedule.owner != owner or not is_alike(schedule.target, changes["target"]):
            return None
        return schedule if is_so(schedule, {**changes, "target": schedule.target}) else None

    async def edit(
        self,
        schedule_id: str,
        *,
        owner: str | None,
        cadence: Cadence | None = None,
        target: Target | None = None,
        policies: Policies | None = None,
        enabled: bool | None = None,
        expected_revision: int | None = None,
        withdraw: bool = False,
    ) -> Schedule:
        """Changes what is given, from the next slot on; a broken schedule works again, a paused one stays paused.

        `enabled` also pauses or resumes it, in the same revision.
        """
        _require_plan(target=target, policies=policies)
        given = {"cadence": cadence, "target": target, "policies": policies}
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= {} if enabled is None else _switched(enabled)
        return await self._change(schedule_id, owner, changes, expected_revision, withdraw=withdraw)

    async def pause(
        self, schedule_id: str, *, owner: str | None, expected_revision: int | None = None, withdraw: bool = False
    ) -> Schedule:
        """Opens no more slots. Runs that were opened go on, unless those that wait are to be withdrawn."""
        changes = PAUSED
        return await self._change(schedule_id, owner, changes, expected_revision, withdraw=withdraw)

    async def resume(self, schedule_id: str, *, owner: str | None, expected_revision: int | None = None) -> Schedule:
        """Slots open again from now on; those of the pause are not made up for."""
        return await self._change(schedule_id, owner, ACTIVE, expected_revision)

    async def delete(
        self, schedule_id: str, *, owner: str | None, expected_revision: int | None = None, withdraw: bool = False
    ) -> Schedule:
        """Leaves a tombstone that the ledger points to; missed slots that were still owed become a gap."""
        changes = DELETED
        return await self._change(schedule_id, owner, changes, expected_revision, withdraw=withdraw)

    async def _change(
        self,
        schedule_id: str,
        owner: str | None,
        changes: Changes,
        expected_revision: int | None,
        *,
        withdraw: bool = False,
    ) -> Schedule:
        if expected_revision is not None:
            whole_number_of(expected_revision, field="expected_revision", least=1, most=_MOST_NUMBERED)
        if not isinstance(withdraw, bool):
            raise InvalidInput("withdraw", f"is a {type(withdraw).__name__}", fix="use True or False")
        drawn = self.draw()
        if "cadence" in changes:
            require_fires(changes["cadence"], after=drawn.now // SECOND)
        earlier_runs, granting = count(), self.graphs.granting(changes.get("target"), drawn.now)

        async def work(tx: Transaction) -> Changed:
            is_rerun = next(earlier_runs) > 0
            schedule = await _known(tx, schedule_id, owner, lock=True)
            meant = await granting.target_in(tx, schedule.id, schedule.owner)
            asked = changes if meant is None else {**changes, "target": meant}
            # An earlier run of this work, whose answer was lost, may have made the schedule what it is.
            if not (is_rerun and schedule.updated_at == drawn.now and is_so(schedule, asked)):
                _require_living(schedule)
                schedule.require_revision(expected_revision)
            if "target" in changes:
                await require_target(tx, asked["target"], schedule.owner)
            changed = await self.revise_in(tx, schedule, asked, drawn)
            if withdraw:
                await self._withdraw(tx, changed.schedule, drawn)
            return changed

        return self.told(await self.graphs.transact(self.storage, work))

    async def add_in(self, tx: Transaction, new: Schedule) -> bool:
        """False if its id is taken."""
        await require_target(tx, new.target, new.owner)
        is_added = await tx.schedules.add(new)
        if is_added:
            await self.graphs.require_payable_in(tx, new.target)
            await assign_in(tx, new)
            # From here on somebody counts on being in time.
            await outages_until(tx, new.created_at, self.pace, since=new.created_at)
        return is_added

    async def revise_in(self, tx: Transaction, schedule: Schedule, changes: Changes, drawn: Drawn) -> Changed:
        if is_so(schedule, changes):
            return Changed(schedule)
        schedule, decisions = await open_before_change(tx, schedule, drawn, self.pace)
        changed = schedule.changed(at=drawn.now, **_mended(schedule, changes))
        if not _PLAN.isdisjoint(changes):
            await self.graphs.require_payable_in(tx, changed.target)
        await tx.schedules.revise(changed)
        await assign_in(tx, changed, before=schedule.target)
        batch = Batch(drawn, self.pace)
        if changed.state is ScheduleState.DELETED:
            await tx.declarations.forget(schedule.id)
            for owed in await tx.ledger.arrears(schedule.id):
                batch.forgive(owed)
            await batch.save(tx)
        return Changed(changed, [*decisions, *batch.decisions])

    async def pause_in(self, tx: Transaction, schedule_id: ScheduleId, drawn: Drawn, *, reason: str) -> Changed | None:
        """With somebody else's change, and only what is active: whoever paused it before had a reason of their own."""
        schedule = await tx.schedules.lock(schedule_id)
        if schedule is None or schedule.state is not ScheduleState.ACTIVE:
            return None
        return await self.revise_in(tx, schedule, {**PAUSED, "state_reason": reason}, drawn)

    def told(self, changed: Changed) -> Schedule:
        self.telemetry.decided(changed.decisions)
        return changed.schedule

    async def _withdraw(self, tx: Transaction, schedule: Schedule, drawn: Drawn) -> None:
        in_flight = (await tx.ledger.in_flight([schedule.id])).get(schedule.id)
        for run_id in in_flight.waiting if in_flight else ():
            why = f"withdrawn: its schedule came to revision {schedule.revision}, {schedule.state}"
            await end_run(tx, RunId(run_id), why=why, now=drawn.now, pace=self.pace)

    # Looking

    async def get(self, schedule_id: str, *, owner: str | None) -> Schedule:
        return await self.storage.read(lambda tx: _living(tx, schedule_id, owner))

    async def upcoming(self, schedule_id: str, *, owner: str | None, most: int = 5) -> Sequence[Fire]:
        """The next slots and when they fire; none, unless the schedule is active."""
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        return (await self.get(schedule_id, owner=owner)).upcoming(most)

    async def revisions(self, schedule_id: str, *, owner: str | None) -> Sequence[Revision]:
        """First to last, of a deleted schedule too."""

        async def work(tx: Transaction) -> Sequence[Revision]:
            return await tx.schedules.revisions((await _known(tx, schedule_id, owner)).id)

        return await self.storage.read(work)

    async def runs(
        self, schedule_id: str, *, owner: str | None, before: Instant | None = None, most: int = 100
    ) -> Sequence[Run]:
        """The newest slots first, of a deleted schedule too; `before` is the slot of the last one seen.

        Runs that share a slot come together, so a page may be shorter than asked while more are to come.
        """
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        if before is not None:
            whole_number_of(before, field="before", least=-_MOST_NUMBERED, most=_MOST_NUMBERED)

        async def work(tx: Transaction) -> Sequence[Run]:
            schedule = await _known(tx, schedule_id, owner)
            return _whole_slots(await tx.ledger.of_schedule(schedule.id, before=before, most=most + 1), most)

        return await self.storage.read(work)

    # Runs that no cadence planned

    async def run_now(self, schedule_id: str, *, owner: str | None, key: str | None = None) -> Run:
        """A run by hand, paused or not, in the schedule's lane. The same key again answers the same run."""
        own_key = self._own_key(RunKind.MANUAL, key)
        drawn = self.draw(rows=1)

        async def work(tx: Transaction) -> Run:
            schedule = await _living(tx, schedule_id, owner, lock=True)
            runs = await tx.ledger.by_key(schedule.id, own_key)
            if not runs:
                runs = await self._add(tx, schedule, [drawn.now // SECOND], drawn, kind=RunKind.MANUAL, own_key=own_key)
            return runs[0]

        return await self.storage.transact(work)

    async def preview_backfill(
        self, schedule_id: str, *, owner: str | None, start: datetime, end: datetime, cap: int = 100
    ) -> Backfill:
        """What `backfill` would run: how many, which, and at what cost."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Backfill:
            schedule = await _living(tx, schedule_id, owner)
            asked = backfill_of(schedule.cadence, start, end, cap=cap, now=now)
            cost = await self._estimate(tx, schedule, len(asked.instants))
            return replace(asked, revision=schedule.revision, cost=cost)

        return await self.storage.read(work)

    async def _estimate(self, tx: Transaction, schedule: Schedule, runs: int) -> Estimate:
        work = (schedule.target.kind, schedule.target.payload)
        prices = self.graphs.prices
        return await estimate_in(tx, [work] * runs, prices, owner=schedule.owner, schedules=[schedule.id])

    async def backfill(
        self,
        schedule_id: str,
        *,
        owner: str | None,
        start: datetime,
        end: datetime,
        cap: int = 100,
        max_cost: Amount | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Sequence[Run]:
        """Runs the schedule as it is now for fires of the past, oldest first, in its lane; refused beyond the cap.

        Also refused if more than `max_cost` would be held for them, or if it is no longer at the revision that a
        preview showed. The same key again answers the same runs, and adds those of a longer span.
        """
        own_key = self._own_key(RunKind.BACKFILL, key)
        drawn = self.draw(rows=whole_number_of(cap, field="cap", least=1, most=MOST_BACKFILLED))

        async def work(tx: Transaction) -> Sequence[Run]:
            schedule = await _living(tx, schedule_id, owner, lock=True)
            await _require_as_shown(tx, schedule, expected_revision, own_key)
            asked = backfill_of(schedule.cadence, start, end, cap=cap, now=drawn.now)
            asked.require_fit()
            if max_cost is not None:
                (await self._estimate(tx, schedule, asked.count)).require_within(max_cost)
            slots = [instant // SECOND for instant in asked.instants]
            return await self._add(tx, schedule, slots, drawn, kind=RunKind.BACKFILL, own_key=own_key)

        return await self.storage.transact(work)

    async def _add(
        self, tx: Transaction, schedule: Schedule, slots: Sequence[int], drawn: Drawn, *, kind: RunKind, own_key: str
    ) -> list[Run]:
        await require_target(tx, schedule.target, schedule.owner, taking=True)
        batch = Batch(drawn, self.pace)
        batch.add(schedule, slots, kind=kind, own_key=own_key)
        await batch.save(tx)
        return await tx.ledger.by_key(schedule.id, own_key)

    def _own_key(self, kind: RunKind, key: str | None) -> str:
        key = self.dice.new_id("key") if key is None else text_of(key, field="key", longest=LONGEST_KEY)
        return f"{kind}:{key}"

    def draw(self, *, rows: int = MOST_ROWS) -> Drawn:
        return draw(self.storage.clock, self.dice, self.places, rows=rows)

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Schedule]:
        """In order of id, tombstones left out; `after` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        last = None if after is None else ScheduleId(text_of(after, field="after"))

        async def work(tx: Transaction) -> Sequence[Schedule]:
            return await tx.schedules.of_owner(whose, after=last, most=most)

        return await self.storage.read(work)

    # The same in the words of ScheduleControl.
    update = edit
    trigger = run_now
    describe = get


def _switched(enabled: bool) -> Changes:
    return ACTIVE if enabled else PAUSED


def is_over(cadence: object, now: Instant) -> bool:
    return isinstance(cadence, Cadence) and cadence.next_second(now // SECOND) is None


def is_so(schedule: Schedule, changes: Changes) -> bool:
    return all(getattr(schedule, name) == value for name, value in _mended(schedule, changes).items())


def _mended(schedule: Schedule, changes: Changes) -> Changes:
    """A broken schedule that is changed is to work again, unless another state is asked for."""
    return {**ACTIVE, **changes} if schedule.state is ScheduleState.BROKEN else changes


async def _known(tx: Transaction, schedule_id: str, owner: str | None, *, lock: bool = False) -> Schedule:
    """A schedule of the caller's, or its tombstone."""
    find = tx.schedules.lock if lock else tx.schedules.get
    schedule = await find(ScheduleId(text_of(schedule_id, field="id")))
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(schedule_id)
    return schedule


async def _require_as_shown(tx: Transaction, schedule: Schedule, expected: int | None, own_key: str) -> None:
    """What was begun under its key is told again, whatever the schedule has become."""
    if expected in (None, schedule.revision) or await tx.ledger.by_key(schedule.id, own_key):
        return
    raise ScheduleChanged(schedule.id, expected=expected, found=schedule.revision)


async def _living(tx: Transaction, schedule_id: str, owner: str | None, *, lock: bool = False) -> Schedule:
    schedule = await _known(tx, schedule_id, owner, lock=lock)
    _require_living(schedule)
    return schedule


def _require_living(schedule: Schedule) -> None:
    if schedule.state is ScheduleState.DELETED:
        raise UnknownSchedule(schedule.id)


def _require_plan(*, target: Target | None, policies: Policies | None) -> None:
    if target is not None and not isinstance(target, Target):
        raise InvalidInput("target", f"is a {type(target).__name__}", fix="use a Target")
    if policies is not None and not isinstance(policies, Policies):
        raise InvalidInput("policies", f"is a {type(policies).__name__}", fix="use Policies")


async def require_target(tx: Transaction, target: Target, owner: Owner, *, taking: bool = False) -> None:
    """Its pool, or the template that it names, which has to take its params."""
    pool = target.pool
    if target.template is not None:
        pool = (await snapshot_for(tx, target.kind, target.payload, owner)).new.pool
    await require_pool(tx, pool, taking=taking)


async def require_pool(tx: Transaction, name: PoolName, *, taking: bool = False) -> None:
    """A pool that is there, and one that takes jobs now if one is to be put."""
    pool = await tx.pools.get(name)
    refusal = refusal_of(pool, name)
    if refusal is not None and (pool is None or taking):
        raise refusal


def _whole_slots(runs: list[Run], most: int) -> Sequence[Run]:
    """The page of at most so many runs, ending where a slot's runs end: the next one begins with an earlier slot."""
    if len(runs) <= most:
        return runs
    page = [run for run in runs if run.scheduled_for > runs[most].scheduled_for]
    return page or runs[:most]
