"""A schedule that runs a workflow: made, or made so, with its grant, in the transaction of whoever asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duly.application.batch import Drawn
from duly.application.schedule_checks import require_pool
from duly.application.schedules import ACTIVE, Changed, Schedules, is_over, is_so
from duly.application.workflow_targets import serving_grant, target_of
from duly.domain.cadence import Cadence
from duly.domain.grants import Grant
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND
from duly.domain.policies import Policies
from duly.domain.schedules import Schedule, ScheduleState, new_schedule, require_fires
from duly.domain.workflows import Bound, Plan, WorkflowTaken, WorkflowVersion
from duly.ports.storage import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSchedule:
    """`activates`: a pause ends with it; else it stays paused, as somebody wanted."""

    id: ScheduleId
    version: WorkflowVersion
    plan: Plan
    given: Mapping[str, Any]
    cadence: Cadence
    policies: Policies
    fresh_grant: Grant
    trigger: str | None = None
    activates: bool = False

    async def made_in(self, tx: Transaction, schedules: Schedules, drawn: Drawn) -> Changed:
        found = await tx.schedules.lock(self.id)
        grant = await self._grant(tx, found, drawn)
        wanted: dict[str, Any] = {
            "cadence": self.cadence,
            "target": target_of(self.version, self.plan, grant.id, self.given),
            "policies": self.policies,
        }
        if found is None:
            changed = await self._added(tx, schedules, wanted, drawn)
        else:
            changed = await self._revised(tx, schedules, found, wanted, drawn)
        await tx.workflows.bind(Bound(self.id, self.version.owner, self.version.name, await self._trigger(tx)))
        await tx.grants.assign(self.id, grant.id)
        return changed

    async def _grant(self, tx: Transaction, found: Schedule | None, drawn: Drawn) -> Grant:
        renews = self.activates or found is None or found.state is ScheduleState.DELETED
        grant = await serving_grant(tx, self.id, self.fresh_grant, self.version.graph_id, drawn.now, renews=renews)
        if grant is self.fresh_grant:
            await tx.grants.add(grant)
        return grant

    async def _added(self, tx: Transaction, schedules: Schedules, wanted: Mapping[str, Any], drawn: Drawn) -> Changed:
        new = new_schedule(schedule_id=self.id, owner=self.version.owner, now=drawn.now, **wanted)
        if not await schedules.add_in(tx, new):
            raise WorkflowTaken(f"the schedule {self.id!r}")
        return Changed(new)

    async def _revised(
        self, tx: Transaction, schedules: Schedules, found: Schedule, wanted: Mapping[str, Any], drawn: Drawn
    ) -> Changed:
        await self._require_ours(tx, found)
        await require_pool(tx, wanted["target"].pool)
        if not is_so(found, wanted) and is_over(self.cadence, drawn.now):
            require_fires(self.cadence, after=drawn.now // SECOND)
        wakes = self.activates or found.state is ScheduleState.DELETED
        return await schedules.revise_in(tx, found, {**wanted, **(ACTIVE if wakes else {})}, drawn)

    async def _require_ours(self, tx: Transaction, found: Schedule) -> None:
        """One that runs something else is somebody's, even if it is the same owner's."""
        bound = await tx.workflows.bound(found.id)
        is_free = found.state is ScheduleState.DELETED or (bound is not None and bound.workflow == self.version.name)
        if found.owner != self.version.owner or not is_free:
            raise WorkflowTaken(f"the schedule {found.id!r}")

    async def _trigger(self, tx: Transaction) -> str | None:
        """Whoever changes a trigger's schedule by hand does not make it somebody else's."""
        bound = await tx.workflows.bound(self.id)
        return self.trigger if self.trigger is not None or bound is None else bound.trigger
