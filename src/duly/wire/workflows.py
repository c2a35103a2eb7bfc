"""Workflows, their versions and their runs, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.application.dag_runs import Told
from duly.application.deployments import Deployed as DomainDeployed
from duly.application.deployments import Fate
from duly.domain.executions import TIMEOUT_MS, ExecutionStatus, OnCrash
from duly.domain.instants import moment_of
from duly.domain.payloads import Payload, value_of
from duly.domain.schedules import Schedule
from duly.domain.workflows import Launch as DomainLaunch
from duly.domain.workflows import NodeRun, NodeState
from duly.domain.workflows import Workflow as DomainWorkflow
from duly.domain.workflows import WorkflowVersion as DomainVersion
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape

_EXAMPLE: dict[str, Any] = {
    "name": "morning-news",
    "nodes": [
        {"id": "fetch", "action": {"http": {"method": "GET", "url": "https://news.example/today"}}},
        {
            "id": "post",
            "action": {"http": {"url": "https://chat.example/post"}},
            "inputs": {"text": {"from": "fetch", "path": "result.body"}},
        },
    ],
    "triggers": [{"type": "schedule_based", "cron_expr": "0 7 * * *", "timezone": "Europe/Vienna"}],
}


class NewWorkflow(Shape):
    """A document: which actions run, what each needs, and when."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: str
    nodes: list[Any]
    version: Annotated[int | None, Field(description="The next one, if none is given.")] = None
    description: str | None = None
    params: Annotated[dict[str, Any], Field(description="What runs are given, unless something else is.")] = Field(
        default_factory=dict
    )
    triggers: list[Any] = Field(default_factory=list)
    on_crash: Annotated[OnCrash, Field(strict=False)] = OnCrash.RESUME
    timeout_ms: int = TIMEOUT_MS
    max_cost: Annotated[str | None, Field(description="Held before each run, such as 0.50.")] = None
    concurrency: Annotated[int, Field(description="How many nodes run at once.")] = 8
    executor: Annotated[
        dict[str, Any] | None, Field(description="Another service that runs it: `url`, `callback`, `deadline_ms`.")
    ] = None

    def document(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in given.items() if value is not None}


class ScheduledTrigger(Shape):
    trigger: str
    schedule_id: str
    fate: Fate
    next_run_at: Moment | None


class Deployed(Shape):
    name: str
    version: int
    graph_id: str
    is_new: Annotated[bool, Field(description="false: the newest version says the same already.")]
    schedules: list[ScheduledTrigger]


class Workflow(Shape):
    name: str
    owner: str
    newest: int
    deployed: bool
    created_at: Moment
    updated_at: Moment


class WorkflowSchedule(Shape):
    schedule_id: str
    state: str
    words: str
    next_run_at: Moment | None


class WorkflowDetail(Workflow):
    version: int
    document: dict[str, Any]
    schedules: list[WorkflowSchedule]


class WorkflowVersion(Shape):
    name: str
    version: int
    graph_id: str
    hash: Annotated[str, Field(description="Of what the document says, without its version.")]
    created_at: Moment
    document: dict[str, Any]


class Undeployed(Shape):
    schedules: Annotated[list[str], Field(description="Which were deleted.")]


class NewLaunch(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"params": {"topic": "sea"}}]})

    params: dict[str, Any] = Field(default_factory=dict)
    version: Annotated[int | None, Field(description="The newest, if none is given.")] = None


class Launch(Shape):
    key: str
    workflow: str
    version: int
    job_id: str
    created_at: Moment


class Node(Shape):
    id: str
    state: NodeState
    tries: int
    result: Any
    error_code: str | None
    error: Annotated[str | None, Field(description="Why it failed, or was skipped.")]
    started_at: Moment | None
    ended_at: Moment | None


class WorkflowRun(Shape):
    run_id: str
    workflow: str
    version: int
    status: ExecutionStatus
    ok: bool | None
    error_code: str | None
    error: str | None
    attempt: int
    begun_at: Moment
    completed_at: Moment | None


class WorkflowRunDetail(WorkflowRun):
    result: Any
    nodes: list[Node]


def deployed_shape(deployed: DomainDeployed) -> Deployed:
    return Deployed(
        name=deployed.version.name,
        version=deployed.version.version,
        graph_id=deployed.version.graph_id,
        is_new=deployed.is_new,
        schedules=[
            ScheduledTrigger(
                trigger=each.trigger,
                schedule_id=each.schedule_id,
                fate=each.fate,
                next_run_at=moment_or_none(each.next_run_at),
            )
            for each in deployed.schedules
        ],
    )


def _fields(workflow: DomainWorkflow) -> dict[str, Any]:
    return {
        "name": workflow.name,
        "owner": workflow.owner,
        "newest": workflow.newest,
        "deployed": workflow.deployed,
        "created_at": moment_of(workflow.created_at),
        "updated_at": moment_of(workflow.updated_at),
    }


def workflow_shape(workflow: DomainWorkflow) -> Workflow:
    return Workflow(**_fields(workflow))


def detail_shape(workflow: DomainWorkflow, version: DomainVersion, schedules: list[Schedule]) -> WorkflowDetail:
    return WorkflowDetail(
        **_fields(workflow),
        version=version.version,
        document=value_of(version.document),
        schedules=[
            WorkflowSchedule(
                schedule_id=each.id,
                state=each.state.value,
                words=each.cadence.explain(),
                next_run_at=next((moment_of(fire.slot) for fire in each.upcoming(1)), None),
            )
            for each in schedules
        ],
    )


def version_shape(version: DomainVersion) -> WorkflowVersion:
    return WorkflowVersion(
        name=version.name,
        version=version.version,
        graph_id=version.graph_id,
        hash=version.hash,
        created_at=moment_of(version.created_at),
        document=value_of(version.document),
    )


def launch_shape(launch: DomainLaunch) -> Launch:
    return Launch(
        key=launch.key,
        workflow=launch.workflow,
        version=launch.version,
        job_id=launch.job_id,
        created_at=moment_of(launch.created_at),
    )


def _run_fields(told: Told) -> dict[str, Any]:
    run, execution = told.run, told.execution
    return {
        "run_id": run.run_id,
        "workflow": run.workflow,
        "version": run.version,
        "status": execution.status,
        "ok": execution.ok,
        "error_code": execution.error_code,
        "error": execution.error_message,
        "attempt": execution.attempt,
        "begun_at": moment_of(run.begun_at),
        "completed_at": moment_or_none(execution.completed_at),
    }


def run_shape(told: Told) -> WorkflowRun:
    return WorkflowRun(**_run_fields(told))


def run_detail_shape(told: Told) -> WorkflowRunDetail:
    return WorkflowRunDetail(
        **_run_fields(told), result=_value(told.execution.result), nodes=[_node(row) for row in told.nodes]
    )


def _node(row: NodeRun) -> Node:
    return Node(
        id=row.node,
        state=row.state,
        tries=row.tries,
        result=_value(row.result),
        error_code=row.error_code,
        error=row.error,
        started_at=moment_or_none(row.started_at),
        ended_at=moment_or_none(row.ended_at),
    )


def _value(payload: Payload | None) -> Any:
    return None if payload is None else value_of(payload)
