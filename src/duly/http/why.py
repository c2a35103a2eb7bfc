"""Routes that say why a job, a group or a run of a workflow is as it is, to whoever may read it."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.ids import GroupId, JobId
from duly.http.answers import json_answer
from duly.http.door import Door, Visiting
from duly.http.parameters import Id
from duly.http.workflows import RunId
from duly.wire.explanations import Reasons, reasons_shape

router = APIRouter(prefix="/api/v1", route_class=Door)


@router.get(
    "/jobs/{id}/why",
    tags=["jobs"],
    response_model=Reasons,
    summary="Ask why a job is as it is",
    response_description="The answer in one word, and the facts in sentences.",
)
async def explain_job(visit: Visiting, id: Id) -> Response:
    """What it waits for and who is ahead, or how its attempts ended, from recorded facts."""
    return json_answer(reasons_shape(await visit.queue.why.job(JobId(id), owner=visit.sees)))


@router.get(
    "/groups/{id}/why",
    tags=["groups"],
    response_model=Reasons,
    summary="Ask why a group is as it is",
    response_description="The answer in one word, and the facts in sentences.",
)
async def explain_group(visit: Visiting, id: Id) -> Response:
    """How far it has come, which members hold it up, and which failed."""
    return json_answer(reasons_shape(await visit.queue.why.group(GroupId(id), owner=visit.sees)))


@router.get(
    "/workflows/{id}/runs/{run_id}/why",
    tags=["workflows"],
    response_model=Reasons,
    summary="Ask why a run of a workflow is as it is",
    response_description="The answer in one word, and the facts in sentences.",
)
async def explain_workflow_run(visit: Visiting, id: Id, run_id: RunId) -> Response:
    """What became of its nodes, what the others wait for, and what it has spent."""
    return json_answer(reasons_shape(await visit.queue.why.workflow_run(run_id, owner=visit.sees, workflow=id)))
