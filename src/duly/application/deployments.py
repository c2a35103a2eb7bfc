"""One document on its way into the store: its version, and the schedules that its triggers ask for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum

from duly.application.batch import Drawn
from duly.application.schedules import DELETED, Changed, Schedules
from duly.application.workflow_schedules import WorkflowSchedule
from duly.application.workflow_targets import new_grant
from duly.domain.errors import InvalidInput
from duly.domain.ids import AccountId, GrantId, Owner, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.schedules import Schedule, ScheduleState
from duly.domain.workflows import (
    Bound,
    Plan,
    Trigger,
    VersionTaken,
    Workflow,
    WorkflowTaken,
    WorkflowVersion,
    schedule_id_of,
    version_of,
)
from duly.ports.storage import Transaction


class Fate(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What deploying did to a trigger's schedule."""

    trigger: str
    schedule_id: ScheduleId
    fate: Fate
    next_run_at: Instant | None


@dataclass(frozen=True, slots=True)
class Deployed:
    version: WorkflowVersion
    is_new: bool
    schedules: Sequence[Scheduled]


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is drawn is drawn before, so that a rerun does the same."""

    schedules: Schedules
    plan: Plan
    owner: Owner
    drawn: Drawn
    account: AccountId | None
    grants: Mapping[str, GrantId]
    # Kept through reruns: an earlier one, whose answer was lost, may have retired them.
    _retired: dict[ScheduleId, tuple[str, list[Changed]]] = field(default_factory=dict)

    async def made(self, tx: Transaction) -> tuple[Deployed, list[Changed]]:
        workflow = await self._workflow(tx)
        version, is_new = await self._version(tx, workflow)
        await tx.workflows.save(replace(workflow, newest=version.version, deployed=True, updated_at=self.drawn.now))
        scheduled: list[Scheduled] = []
        changes: list[Changed] = []
        for trigger in self.plan.triggers:
            changed = await self._schedule(tx, trigger, version)
            scheduled.append(self._told(trigger.id, changed.schedule))
            changes.append(changed)
        for bound in await tx.workflows.bound_to(self.plan.name):
            if bound.trigger is not None and bound.trigger not in self.grants:
                self._retired[bound.schedule_id] = (bound.trigger, await self._retire(tx, bound))
        for schedule_id, (trigger_id, retired) in self._retired.items():
            scheduled.append(Scheduled(trigger_id, schedule_id, Fate.DELETED, None))
            changes += retired
        return Deployed(version, is_new, scheduled), changes

    async def _workflow(self, tx: Transaction) -> Workflow:
        now = self.drawn.now
        new = Workflow(
            name=self.plan.name,
            owner=self.owner,
            newest=self.plan.version or 1,
            deployed=True,
            created_at=now,
            updated_at=now,
        )
        await tx.workflows.add(new)
        found = await tx.workflows.lock(self.plan.name) or new
        if found.owner != self.owner:
            raise WorkflowTaken(f"the name {self.plan.name!r}")
        return found

    async def _version(self, tx: Transaction, workflow: Workflow) -> tuple[WorkflowVersion, bool]:
        newest = await tx.workflows.version(workflow.name, workflow.newest)
        if newest is not None and newest.hash == self.plan.hash:
            if self.plan.version is not None and self.plan.version < newest.version:
                raise VersionTaken(workflow.name, self.plan.version, newest.version)
            return newest, newest.created_at == self.drawn.now
        number = self.plan.version or (workflow.newest if newest is None else newest.version + 1)
        if newest is not None and number <= newest.version:
            raise VersionTaken(workflow.name, number, newest.version)
        made = WorkflowVersion(
            name=workflow.name,
            version=version_of(number),
            owner=self.owner,
            hash=self.plan.hash,
            document=self.plan.document,
            created_at=self.drawn.now,
        )
        await tx.workflows.add_version(made)
        return made, True

    async def _schedule(self, tx: Transaction, trigger: Trigger, version: WorkflowVersion) -> Changed:
        if self.account is None:
            raise InvalidInput("account", "is missing")  # it is there whenever there is a trigger
        wanted = WorkflowSchedule(
            id=schedule_id_of(version.name, trigger.id),
            version=version,
            plan=self.plan,
            given=self.plan.input_for(trigger.params),
            cadence=trigger.cadence,
            policies=trigger.policies_over(self.schedules.defaults),
            fresh_grant=new_grant(self.grants[trigger.id], version, self.account, self.drawn.now),
            trigger=trigger.id,
        )
        try:
            return await wanted.made_in(tx, self.schedules, self.drawn)
        except InvalidInput as error:
            raise InvalidInput(f"triggers.{trigger.id}.{error.field}", error.reason, fix=error.fix) from None

    async def _retire(self, tx: Transaction, bound: Bound) -> list[Changed]:
        schedule = await tx.schedules.lock(bound.schedule_id)
        await tx.workflows.unbind(bound.schedule_id)
        if schedule is None or schedule.state is ScheduleState.DELETED:
            return []
        return [await self.schedules.revise_in(tx, schedule, DELETED, self.drawn)]

    def _told(self, trigger: str, schedule: Schedule) -> Scheduled:
        now = self.drawn.now
        fate = Fate.UNCHANGED if schedule.updated_at != now else Fate.UPDATED
        fate = Fate.CREATED if schedule.created_at == now else fate
        slot = None if schedule.next_slot is None else Instant(schedule.next_slot * SECOND)
        return Scheduled(trigger, schedule.id, fate, slot)


async def require_actions(tx: Transaction, plan: Plan, knows: Collection[str]) -> None:
    """An executor elsewhere has actions of its own."""
    if plan.executor is not None or not plan.actions:
        return
    known = await tx.workflows.actions() | set(knows)
    for action, node in plan.actions.items():
        if action not in known:
            near = get_close_matches(action, known, n=1)
            fix = f"did you mean {near[0]!r}?" if near else "register it with app.action(…), and start that program"
            raise InvalidInput(f"nodes.{node}.action", f"no program has an action {action!r}", fix=fix)
