"""Routes that change a job that waits, and show the chain it belongs to."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.ids import JobId
from duly.http.answers import json_answer
from duly.http.door import Door, Visiting
from duly.http.jobs import job_answer
from duly.http.parameters import Id
from duly.wire import job_changes as wire
from duly.wire.jobs import Job, JobDetail, job_shape
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=Door)


@router.patch(
    "/{id}",
    response_model=JobDetail,
    summary="Change a job's params",
    response_description="The job as it is now.",
)
async def edit_job(visit: Visiting, id: Id, body: wire.JobPatch) -> Response:
    """While nobody has it; from its dispatch on its params are fixed. Checked by the schema it was put with."""
    await visit.queue.jobs.edit_params(JobId(id), body.params, owner=visit.sees)
    return await job_answer(visit, JobId(id))


@router.get(
    "/{id}/chain",
    response_model=Page[Job],
    summary="Show all attempts of a job",
    response_description="The attempts, first to last.",
)
async def get_chain(visit: Visiting, id: Id) -> Response:
    """Automatic retries, and those that a person asked for; named by any of them."""
    job = await visit.queue.jobs.find(JobId(id), owner=visit.sees)
    return json_answer(Page[Job](items=[job_shape(each) for each in await visit.queue.jobs.chain(job.id)]))
