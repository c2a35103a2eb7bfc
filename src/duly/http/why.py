"""Routes that say why a job, a group or a run of a workflow is as it is, to whoever may read it."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.ids import JobId
from duly.http.answers import json_answer
from duly.http.door import Door, Visiting
from duly.http.parameters import Id
from duly.wire.explanations import Reasons, reasons_shape

router = APIRouter(prefix="/api/v1", route_class=Door)


@router.get(
    "/jobs/{id}/why",
    tags=["jobs"],
    response_model=Reasons,
    summary="Ask why a job is as it is",
    response_description="The answer in one word, and the facts in sentences.",
)
async def explain_job(visit: Visiting, id: Id) -> Response:  # noqa: A002
    """What it waits for and who is ahead, or how its attempts ended, from recorded facts."""
    return json_answer(reasons_shape(await visit.queue.why.job(JobId(id), owner=visit.sees)))
