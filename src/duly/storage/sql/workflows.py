"""Workflows, in SQL."""

from collections.abc import Collection, Sequence

from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import Instant
from duly.domain.workflows import (
    Bound,
    CallBack,
    CalledBack,
    DagRun,
    Launch,
    NodeRun,
    NodeState,
    Workflow,
    WorkflowVersion,
)
from duly.storage.executor import Executor, Row
from duly.storage.sql.rows import PAST_EVERY_ID
from duly.storage.sql.topics import execution_topic


class SqlWorkflows:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, workflow: Workflow) -> bool:
        rows = await self._x.fetch(
            "insert_workflow",
            name=workflow.name,
            owner=workflow.owner,
            newest=workflow.newest,
            deployed=int(workflow.deployed),
            now=workflow.created_at,
        )
        return bool(rows)

    async def get(self, name: str) -> Workflow | None:
        return next(map(_workflow, await self._x.fetch("workflow_by_name", name=name)), None)

    async def lock(self, name: str) -> Workflow | None:
        return next(map(_workflow, await self._x.fetch("workflow_by_name_locked", name=name)), None)

    async def save(self, workflow: Workflow) -> None:
        await self._x.fetch(
            "update_workflow",
            name=workflow.name,
            newest=workflow.newest,
            deployed=int(workflow.deployed),
            now=workflow.updated_at,
        )

    async def listed(self, owner: Owner | None, *, after: str, most: int) -> list[Workflow]:
        if owner is None:
            rows = await self._x.fetch("workflows_listed", after=after, most=most)
        else:
            rows = await self._x.fetch("workflows_listed_of_owner", owner=owner, after=after, most=most)
        return list(map(_workflow, rows))

    # Versions

    async def add_version(self, version: WorkflowVersion) -> None:
        await self._x.fetch(
            "insert_workflow_version",
            name=version.name,
            version=version.version,
            owner=version.owner,
            hash=version.hash,
            document=version.document,
            now=version.created_at,
        )

    async def version(self, name: str, version: int) -> WorkflowVersion | None:
        return next(map(_version, await self._x.fetch("workflow_version", name=name, version=version)), None)

    async def versions(self, name: str, *, before: int, most: int) -> list[WorkflowVersion]:
        rows = await self._x.fetch("workflow_versions_before", name=name, before=before, most=most)
        return list(map(_version, rows))

    # Schedules, actions, launches

    async def bind(self, bound: Bound) -> None:
        await self._x.fetch("bind_schedule", **bound._asdict())

    async def unbind(self, schedule_id: ScheduleId) -> None:
        await self._x.fetch("unbind_schedule", schedule_id=schedule_id)

    async def bound(self, schedule_id: ScheduleId) -> Bound | None:
        return next(map(Bound._make, await self._x.fetch("bound_schedule", schedule_id=schedule_id)), None)

    async def bound_to(self, workflow: str) -> list[Bound]:
        return list(map(Bound._make, await self._x.fetch("bound_schedules", workflow=workflow)))

    async def register_actions(self, owner: Owner, program: str, names: Collection[str]) -> None:
        await self._x.fetch("forget_actions", owner=owner, program=program)
        for name in names:
            await self._x.fetch("insert_action", owner=owner, program=program, name=name)

    async def actions(self) -> set[str]:
        return {row[0] for row in await self._x.fetch("actions_registered")}

    async def add_launch(self, launch: Launch) -> bool:
        rows = await self._x.fetch(
            "insert_launch",
            key=launch.key,
            owner=launch.owner,
            workflow=launch.workflow,
            version=launch.version,
            scheduled_for=launch.scheduled_for,
            job_id=launch.job_id,
            hash=launch.request_hash,
            now=launch.created_at,
            execution_key=launch.execution_key,
        )
        return bool(rows)

    async def launch(self, execution_key: str) -> Launch | None:
        return next(map(_launch, await self._x.fetch("launch_by_key", execution_key=execution_key)), None)

    # Runs

    async def pin(self, run: DagRun) -> DagRun:
        await self._x.fetch(
            "pin_dag_run",
            run_id=run.run_id,
            owner=run.owner,
            workflow=run.workflow,
            version=run.version,
            now=run.begun_at,
        )
        return await self.run(run.run_id) or run

    async def run(self, run_id: str) -> DagRun | None:
        return next(map(_run, await self._x.fetch("dag_run_by_id", run_id=run_id)), None)

    async def runs(self, workflow: str, *, before: str | None, most: int) -> list[DagRun]:
        rows = await self._x.fetch("dag_runs_before", workflow=workflow, before=before or PAST_EVERY_ID, most=most)
        return list(map(_run, rows))

    async def forget_nodes(self, run_id: str) -> None:
        await self._x.fetch("forget_dag_nodes", run_id=run_id)

    async def save_nodes(self, nodes: Sequence[NodeRun]) -> None:
        for node in nodes:
            await self._x.fetch(
                "save_dag_node",
                run_id=node.run_id,
                node=node.node,
                owner=node.owner,
                state=node.state.value,
                tries=node.tries,
                result=node.result,
                error_code=node.error_code,
                error=node.error,
                started_at=node.started_at,
                ended_at=node.ended_at,
            )

    async def nodes(self, run_id: str) -> list[NodeRun]:
        return list(map(_node, await self._x.fetch("dag_nodes_of", run_id=run_id)))

    # An executor elsewhere

    async def accept(self, run_id: str, now: Instant) -> None:
        await self._x.fetch("accept_dag_run", run_id=run_id, now=now)

    async def is_accepted(self, run_id: str) -> bool:
        return bool(await self._x.fetch("dag_run_accepted", run_id=run_id))

    async def call_back(self, run_id: str, said: CallBack) -> bool:
        rows = await self._x.fetch("call_back_dag_run", run_id=run_id, status=said.status.value, said=said.value)
        self._x.wake(execution_topic(run_id))
        return bool(rows)

    async def called_back(self, run_id: str) -> CallBack | None:
        for status, said in await self._x.fetch("dag_run_called_back", run_id=run_id):
            return CallBack(CalledBack(status), said)
        return None


def _workflow(row: Row) -> Workflow:
    name, owner, newest, deployed, created_at, updated_at = row
    return Workflow(
        name=name,
        owner=owner,
        newest=newest,
        deployed=bool(deployed),
        created_at=created_at,
        updated_at=updated_at,
    )


def _version(row: Row) -> WorkflowVersion:
    name, version, owner, digest, document, created_at = row
    return WorkflowVersion(
        name=name, version=version, owner=owner, hash=digest, document=document, created_at=created_at
    )


def _launch(row: Row) -> Launch:
    key, owner, workflow, version, scheduled_for, job_id, digest, created_at, _ = row
    return Launch(
        key=key,
        owner=owner,
        workflow=workflow,
        version=version,
        scheduled_for=scheduled_for,
        job_id=job_id,
        request_hash=digest,
        created_at=created_at,
    )


def _run(row: Row) -> DagRun:
    run_id, owner, workflow, version, begun_at = row
    return DagRun(run_id=run_id, owner=owner, workflow=workflow, version=version, begun_at=begun_at)


def _node(row: Row) -> NodeRun:
    run_id, node, owner, state, tries, result, error_code, error, started_at, ended_at = row
    return NodeRun(
        run_id=run_id,
        node=node,
        owner=owner,
        state=NodeState(state),
        tries=tries,
        result=result,
        error_code=error_code,
        error=error,
        started_at=started_at,
        ended_at=ended_at,
    )
