"""What owners do with workflows: deploy, look, undeploy. `owner` is the caller; an operator names none."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duly.application.deployments import Deployed, Deployment, require_actions
from duly.application.schedules import DELETED, Changed, Schedules
from duly.application.workflow_targets import Payer
from duly.domain.ids import GrantId, Owner, ScheduleId
from duly.domain.schedules import Schedule, ScheduleState
from duly.domain.texts import text_of, whole_number_of
from duly.domain.workflows import (
    MOST_VERSIONS,
    UnknownWorkflow,
    Workflow,
    WorkflowVersion,
    name_of,
    plan_of,
    version_of,
)
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Workflows:
    storage: Storage
    dice: Dice
    schedules: Schedules
    payer: Payer

    async def deploy(self, document: Mapping[str, Any], *, owner: str, knows: Collection[str] = ()) -> Deployed:
        """Stores it as a version and makes its triggers' schedules so, all in one transaction.

        `knows` are actions that the caller has besides those that programs have registered.
        """
        plan, whose = plan_of(document), Owner(text_of(owner, field="owner"))
        account = await self.payer.account_of(whose) if plan.triggers else None
        grants = {trigger.id: GrantId(self.dice.new_id("grant")) for trigger in plan.triggers}
        drawn = self.schedules.draw()
        deployment = Deployment(self.schedules, plan, whose, drawn, account, grants)

        async def work(tx: Transaction) -> tuple[Deployed, list[Changed]]:
            await require_actions(tx, plan, knows)
            return await deployment.made(tx)

        deployed, changes = await self.storage.transact(work)
        for changed in changes:
            self.schedules.told(changed)
        return deployed

    async def undeploy(self, name: str, *, owner: str | None) -> Sequence[ScheduleId]:
        """Deletes its schedules, made by hand or not; its versions stay. Answers which schedules it had."""
        drawn = self.schedules.draw()
        earlier: dict[ScheduleId, Changed] = {}

        async def work(tx: Transaction) -> None:
            workflow = _known(await tx.workflows.lock(name_of(name)), name, owner)
            for bound in await tx.workflows.bound_to(name):
                schedule = await tx.schedules.lock(bound.schedule_id)
                if schedule is not None and schedule.state is not ScheduleState.DELETED:
                    earlier[schedule.id] = await self.schedules.revise_in(tx, schedule, DELETED, drawn)
                await tx.workflows.unbind(bound.schedule_id)
            await tx.workflows.save(replace(workflow, deployed=False, updated_at=drawn.now))

        await self.storage.transact(work)
        for changed in earlier.values():
            self.schedules.told(changed)
        return list(earlier)

    # Looking

    async def get(self, name: str, *, owner: str | None) -> Workflow:
        return await self.storage.read(lambda tx: workflow_known(tx, name, owner))

    async def version(self, name: str, version: int | None, *, owner: str | None) -> WorkflowVersion:
        """The newest unless one is named."""
        return await self.storage.read(lambda tx: version_known(tx, name, version, owner))

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Workflow]:
        """In order of name; `after` is the last name seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        return await self.storage.read(lambda tx: tx.workflows.listed(whose, after=after or "", most=most))

    async def versions(
        self, name: str, *, owner: str | None, before: int | None = None, most: int = 100
    ) -> Sequence[WorkflowVersion]:
        """The newest first; `before` is the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)

        async def work(tx: Transaction) -> Sequence[WorkflowVersion]:
            await workflow_known(tx, name, owner)
            return await tx.workflows.versions(name, before=before or MOST_VERSIONS + 1, most=most)

        return await self.storage.read(work)

    async def schedules_of(self, name: str, *, owner: str | None) -> Sequence[Schedule]:
        async def work(tx: Transaction) -> Sequence[Schedule]:
            await workflow_known(tx, name, owner)
            found = [await tx.schedules.get(bound.schedule_id) for bound in await tx.workflows.bound_to(name)]
            return [each for each in found if each is not None and each.state is not ScheduleState.DELETED]

        return await self.storage.read(work)

    async def register_actions(self, program: str, names: Collection[str], *, owner: str) -> None:
        """What a program can do, for those who deploy elsewhere to be told of what nobody can."""
        whose = Owner(text_of(owner, field="owner"))

        async def work(tx: Transaction) -> None:
            await tx.workflows.register_actions(whose, text_of(program, field="program"), names)

        await self.storage.transact(work)


async def workflow_known(tx: Transaction, name: str, owner: str | None) -> Workflow:
    return _known(await tx.workflows.get(name_of(name)), name, owner)


async def version_known(tx: Transaction, name: str, version: int | None, owner: str | None) -> WorkflowVersion:
    workflow = await workflow_known(tx, name, owner)
    found = await tx.workflows.version(name, workflow.newest if version is None else version_of(version))
    if found is None:
        raise UnknownWorkflow(name, version)
    return found


def _known(workflow: Workflow | None, name: str, owner: str | None) -> Workflow:
    """Somebody else's does not exist."""
    if workflow is None or owner not in (None, workflow.owner):
        raise UnknownWorkflow(name)
    return workflow
