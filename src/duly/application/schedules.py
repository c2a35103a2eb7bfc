"""What owners do with schedules: define, edit, pause, resume, delete; they look and run by hand as well.

Every change first opens what is due until now, then appends a revision. `owner` is the caller, who sees only its own;
an operator names none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from duly.application.batch import Batch, Drawn
from duly.application.graph_grants import assign_in
from duly.application.openings import open_before_change, outages_until
from duly.application.schedule_checks import known_schedule, require_living, require_plan, require_target
from duly.application.schedule_looks import MOST_NUMBERED, ScheduleLooks
from duly.application.schedule_runs import ScheduleRuns
from duly.application.stopping import end_run
from duly.domain.cadence import Cadence
from duly.domain.decisions import Decision
from duly.domain.errors import InvalidInput
from duly.domain.graph_targets import is_alike
from duly.domain.ids import RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import Policies
from duly.domain.schedules import (
    LONGEST_ID,
    Schedule,
    ScheduleExists,
    ScheduleState,
    Target,
    UnknownSchedule,
    new_schedule,
    require_fires,
)
from duly.domain.texts import text_of, whole_number_of
from duly.ports.storage import Transaction
from duly.ports.telemetry import Telemetry

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
class Schedules(ScheduleRuns):
    """`defaults` are the policies of a schedule that names none."""

    defaults: Policies
    telemetry: Telemetry

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
        require_plan(target=target, policies=policies)
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
        require_plan(target=target, policies=policies)
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
            whole_number_of(expected_revision, field="expected_revision", least=1, most=MOST_NUMBERED)
        if not isinstance(withdraw, bool):
            raise InvalidInput("withdraw", f"is a {type(withdraw).__name__}", fix="use True or False")
        drawn = self.draw()
        if "cadence" in changes:
            require_fires(changes["cadence"], after=drawn.now // SECOND)
        earlier_runs, granting = count(), self.graphs.granting(changes.get("target"), drawn.now)

        async def work(tx: Transaction) -> Changed:
            is_rerun = next(earlier_runs) > 0
            schedule = await known_schedule(tx, schedule_id, owner, lock=True)
            meant = await granting.target_in(tx, schedule.id, schedule.owner)
            asked = changes if meant is None else {**changes, "target": meant}
            # An earlier run of this work, whose answer was lost, may have made the schedule what it is.
            if not (is_rerun and schedule.updated_at == drawn.now and is_so(schedule, asked)):
                require_living(schedule)
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

    # The same in the words of ScheduleControl.
    update = edit
    trigger = ScheduleRuns.run_now
    describe = ScheduleLooks.get


def _switched(enabled: bool) -> Changes:
    return ACTIVE if enabled else PAUSED


def is_over(cadence: object, now: Instant) -> bool:
    return isinstance(cadence, Cadence) and cadence.next_second(now // SECOND) is None


def is_so(schedule: Schedule, changes: Changes) -> bool:
    return all(getattr(schedule, name) == value for name, value in _mended(schedule, changes).items())


def _mended(schedule: Schedule, changes: Changes) -> Changes:
    """A broken schedule that is changed is to work again, unless another state is asked for."""
    return {**ACTIVE, **changes} if schedule.state is ScheduleState.BROKEN else changes
