"""Routes of workflows: deploy, look, undeploy, run."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from duly.domain.executions import UnknownExecution
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import number_from, position_from
from duly.http.door import Door, Visiting
from duly.http.parameters import Cursor, Id, Limit, Text
from duly.wire import workflows as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/workflows", tags=["workflows"], route_class=Door)
RunId = Annotated[Text, Path(min_length=1, max_length=255)]
VersionAsked = Annotated[int | None, Query(ge=1, le=1_000_000, description="The newest, if none is given.")]


@router.post(
    "",
    status_code=201,
    response_model=wire.Deployed,
    summary="Deploy a workflow",
    response_description="The version, and what became of its triggers' schedules.",
)
async def deploy_workflow(visit: Visiting, body: wire.NewWorkflow) -> Response:
    """Stores it as the next version, unless the newest says the same, and makes its triggers' schedules so."""
    deployed = await visit.queue.workflows.deploy(body.document(), owner=visit.caller.owner)
    return json_answer(wire.deployed_shape(deployed), 201)


@router.get(
    "", response_model=Page[wire.Workflow], summary="List workflows", response_description="A page of workflows."
)
async def list_workflows(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of name."""
    after = position_from(cursor, "workflows")
    found = await visit.queue.workflows.list(owner=visit.sees, after=after, most=limit + 1)
    return page_answer(
        Page[wire.Workflow], wire.workflow_shape, found, limit, "workflows", key=lambda workflow: workflow.name
    )


@router.get(
    "/{id}",
    response_model=wire.WorkflowDetail,
    summary="Read a workflow",
    response_description="The workflow, with a version's document and its schedules.",
)
async def get_workflow(visit: Visiting, id: Id, version: VersionAsked = None) -> Response:
    use = visit.queue.workflows
    workflow = await use.get(id, owner=visit.sees)
    found = await use.version(id, version, owner=visit.sees)
    schedules = await use.schedules_of(id, owner=visit.sees)
    return json_answer(wire.detail_shape(workflow, found, list(schedules)))


@router.get(
    "/{id}/versions",
    response_model=Page[wire.WorkflowVersion],
    summary="List the versions of a workflow",
    response_description="A page of versions.",
)
async def list_workflow_versions(
    visit: Visiting,
    id: Id,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The newest first; none of them ever changes."""
    before = number_from(cursor, "versions") or None
    found = await visit.queue.workflows.versions(id, owner=visit.sees, before=before, most=limit + 1)
    return page_answer(
        Page[wire.WorkflowVersion], wire.version_shape, found, limit, "versions", key=lambda version: version.version
    )


@router.delete(
    "/{id}",
    response_model=wire.Undeployed,
    summary="Undeploy a workflow",
    response_description="Which schedules it had.",
)
async def undeploy_workflow(visit: Visiting, id: Id) -> Response:
    """Deletes its schedules, and its name starts nothing more. Versions and runs stay on record."""
    return json_answer(wire.Undeployed(schedules=list(await visit.queue.workflows.undeploy(id, owner=visit.sees))))


@router.post(
    "/{id}/runs",
    status_code=201,
    response_model=wire.Launch,
    summary="Run a workflow now",
    response_description="The launch: its key, its version and its job.",
)
async def launch_workflow(visit: Visiting, id: Id, body: wire.NewLaunch | None = None) -> Response:
    """The newest version, unless one is named."""
    asked = wire.NewLaunch() if body is None else body
    owner = (await visit.queue.workflows.get(id, owner=visit.sees)).owner
    key = None if visit.draw is None else f"launch_{visit.draw}"
    launch = await visit.queue.launches.launch(id, owner=owner, version=asked.version, params=asked.params, key=key)
    return json_answer(wire.launch_shape(launch), 201)


@router.get(
    "/{id}/runs",
    response_model=Page[wire.WorkflowRun],
    summary="List the runs of a workflow",
    response_description="A page of runs.",
)
async def list_workflow_runs(visit: Visiting, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The last begun first."""
    before = position_from(cursor, "workflow-runs")
    found = await visit.queue.dag_runs.list(id, owner=visit.sees, before=before, most=limit + 1)
    return page_answer(
        Page[wire.WorkflowRun], wire.run_shape, found, limit, "workflow-runs", key=lambda told: told.run.run_id
    )


@router.get(
    "/{id}/runs/{run_id}",
    response_model=wire.WorkflowRunDetail,
    summary="Read a run of a workflow",
    response_description="The run, and what became of each node.",
)
async def get_workflow_run(visit: Visiting, id: Id, run_id: RunId) -> Response:
    await visit.queue.workflows.get(id, owner=visit.sees)
    told = await visit.queue.dag_runs.get(run_id, owner=visit.sees)
    if told.run.workflow != id:
        raise UnknownExecution(run_id)
    return json_answer(wire.run_detail_shape(told))
