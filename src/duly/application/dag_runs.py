"""What runs of workflows leave: which version each is, what became of its nodes, and what others say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duly.application.call_backs import end_called_back, ended_by, lock_in_order, waits_for_call_back
from duly.application.workflows import workflow_known
from duly.domain.executions import Execution, ExecutionStatus, LeaseLost, UnknownExecution, request_of
from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import SECOND, Instant, instant_of, written
from duly.domain.keys import first_key_of, in_ascii
from duly.domain.schedules import slot_key, slot_of_key
from duly.domain.texts import text_of, whole_number_of
from duly.domain.workflows import (
    CallBack,
    DagRun,
    LateCallBack,
    NodeRun,
    NodeState,
    NotDeployed,
    Plan,
    UnknownWorkflow,
    WorkflowVersion,
    named_by,
    run_key,
)
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which attempt asks: everything it writes shows its token. `keeps` what an earlier attempt left, or forgets it."""

    run_id: str
    attempt: int
    token: int
    graph_id: str
    user: str
    keeps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """`meta` is what an executor is told beside the document."""

    run: DagRun
    version: WorkflowVersion
    plan: Plan
    nodes: Mapping[str, NodeRun]
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """A run as people look at it."""

    run: DagRun
    execution: Execution
    nodes: Sequence[NodeRun]
    called_back: CallBack | None


@dataclass(frozen=True, slots=True)
class DagRuns:
    storage: Storage

    # For the attempt that runs it

    async def begin(self, asking: Asking) -> Begun:
        """Says which version it is, once and for all attempts; somebody else's workflow does not exist."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Begun:
            await _require_standing(tx, asking)
            run = await tx.workflows.run(asking.run_id) or await tx.workflows.pin(await _pinned(tx, asking, now))
            if not asking.keeps:
                await tx.workflows.forget_nodes(asking.run_id)
            version = await tx.workflows.version(run.workflow, run.version)
            if version is None:
                raise UnknownWorkflow(run.workflow, run.version)
            nodes = {node.node: node for node in await tx.workflows.nodes(asking.run_id)}
            meta = await _meta(tx, run)
            return Begun(run=run, version=version, plan=version.plan, nodes=nodes, meta=meta)

        return await self.storage.transact(work)

    async def save(self, asking: Asking, nodes: Sequence[NodeRun]) -> None:
        """Raises LeaseLost if somebody else has taken over."""

        async def work(tx: Transaction) -> None:
            await _require_standing(tx, asking)
            await tx.workflows.save_nodes(nodes)

        await self.storage.transact(work)

    async def accept(self, asking: Asking) -> None:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            await _require_standing(tx, asking)
            await tx.workflows.accept(asking.run_id, now)

        await self.storage.transact(work)

    async def is_accepted(self, run_id: str) -> bool:
        return await self.storage.read(lambda tx: tx.workflows.is_accepted(run_id))

    async def has_ended(self, run_id: str) -> bool:
        """Whether an executor elsewhere has said so."""
        return ended_by(await self.storage.read(lambda tx: tx.workflows.called_back(run_id))) is not None

    # For others

    async def call_back(self, run_id: str, said: CallBack, *, owner: str | None) -> None:
        """The first end stands, and ends the execution that waits for it; saying the same again changes nothing.

        Raises LateCallBack if nobody waits for it.
        """
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            run = await _known(tx, run_id, owner)
            execution = await lock_in_order(tx, await tx.executions.by_run(run.run_id))
            known = await tx.workflows.called_back(run_id)
            if known == said:
                return
            if execution is None or execution.status is ExecutionStatus.DONE or not await _waits(tx, run):
                raise LateCallBack(run_id)
            if not await tx.workflows.call_back(run_id, said):
                raise LateCallBack(run_id)
            if waits_for_call_back(execution):
                await end_called_back(tx, execution, now=now)

        await self.storage.transact(work)

    async def get(self, run_id: str, *, owner: str | None) -> Told:
        async def work(tx: Transaction) -> Told:
            return await _told(tx, await _known(tx, run_id, owner))

        return await self.storage.read(work)

    async def list(
        self, workflow: str, *, owner: str | None, before: str | None = None, most: int = 100
    ) -> Sequence[Told]:
        """The last begun first, without what became of their nodes; `before` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)

        async def work(tx: Transaction) -> Sequence[Told]:
            await workflow_known(tx, workflow, owner)
            runs = await tx.workflows.runs(workflow, before=before, most=most)
            return [await _told(tx, run, nodes=False) for run in runs]

        return await self.storage.read(work)


async def _require_standing(tx: Transaction, asking: Asking) -> None:
    if not await tx.executions.stands(asking.run_id, asking.token):
        raise LeaseLost(asking.run_id, asking.attempt)


async def _pinned(tx: Transaction, asking: Asking, now: Instant) -> DagRun:
    named = named_by(asking.graph_id)
    if named is None:
        raise UnknownWorkflow(asking.graph_id)
    name, version = named
    workflow = await workflow_known(tx, name, asking.user)
    if version is None and not workflow.deployed:
        raise NotDeployed(name)
    number = workflow.newest if version is None else version
    if await tx.workflows.version(name, number) is None:
        raise UnknownWorkflow(name, number)
    return DagRun(run_id=asking.run_id, owner=Owner(asking.user), workflow=name, version=number, begun_at=now)


async def _meta(tx: Transaction, run: DagRun) -> Mapping[str, Any]:
    execution = await tx.executions.by_run(run.run_id)
    key = "" if execution is None else execution.key
    launch = await tx.workflows.launch(key)
    asked = launch or await tx.workflows.launch(first_key_of(key))
    slot = None if execution is None else _slot_of(execution)
    planned = None if slot is None else slot[1]
    scheduled_for = asked.scheduled_for if asked is not None else planned
    return {
        "source": "manual" if scheduled_for is None else "schedule",
        "user_id": run.owner,
        "scheduled_for": None if scheduled_for is None else written(scheduled_for),
        "idempotency_key": launch.key if launch is not None else _key_of(key, slot),
        "run_id": run.run_id,
        "workflow_id": run.workflow,
        "version": run.version,
    }


def _key_of(key: str, slot: tuple[ScheduleId, Instant] | None) -> str:
    """Executed anew it has another key, or its executor would take it for the first."""
    return key if slot is None or key != first_key_of(key) else run_key(slot[0], slot[1] // SECOND)


def _slot_of(execution: Execution) -> tuple[ScheduleId, Instant] | None:
    """The planned slot that a key stands for; runs by hand have keys of their own."""
    schedule_id = request_of(execution.key, execution.request).schedule_id
    first = first_key_of(execution.key)
    moment = slot_of_key(first)
    if schedule_id is None or moment is None:
        return None
    at = instant_of(moment, field="scheduled_for")
    is_planned = first == in_ascii(slot_key(ScheduleId(schedule_id), at // SECOND))
    return (ScheduleId(schedule_id), at) if is_planned else None


async def _waits(tx: Transaction, run: DagRun) -> bool:
    version = await tx.workflows.version(run.workflow, run.version)
    executor = None if version is None else version.plan.executor
    return executor is not None and executor.callback


async def _known(tx: Transaction, run_id: str, owner: str | None) -> DagRun:
    run = await tx.workflows.run(text_of(run_id, field="run_id"))
    if run is None or owner not in (None, run.owner):
        raise UnknownExecution(run_id)
    return run


def _cut_off(row: NodeRun) -> NodeRun:
    """Nobody was left to say how it ended: its run was cancelled, or out of time."""
    return replace(row, state=NodeState.FAILED, error_code="run_ended", error="the run ended before it did")


async def _told(tx: Transaction, run: DagRun, *, nodes: bool = True) -> Told:
    execution = await tx.executions.by_run(run.run_id)
    if execution is None:
        raise UnknownExecution(run.run_id)
    became = await tx.workflows.nodes(run.run_id) if nodes else []
    if execution.status is ExecutionStatus.DONE:
        became = [_cut_off(row) if row.state is NodeState.RUNNING else row for row in became]
    return Told(run, execution, became, await tx.workflows.called_back(run.run_id))
