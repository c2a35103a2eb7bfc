"""Routes of what failed for good: looked at, and tried again by hand, one by one or in bulk."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from duly.application.retries import FailedFilter
from duly.domain.ids import JobId
from duly.domain.instants import instant_of
from duly.domain.tokens import Role
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visit, Visiting, for_role
from duly.http.jobs import job_answer
from duly.http.parameters import Cursor, Id, Limit, Text
from duly.wire import job_changes as wire
from duly.wire.estimates import max_cost_of
from duly.wire.jobs import Job, JobDetail, job_shape
from duly.wire.moments import Moment
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=Door)
by_run = APIRouter(prefix="/api/job-runs", tags=["jobs"], route_class=Door)
RunOfJob = Annotated[Text, Path(min_length=1, max_length=255, description="A job's id: each job has one run.")]


@router.get(
    "/failed",
    response_model=Page[Job],
    summary="List what failed for good",
    response_description="A page of last attempts.",
)
async def list_failed(
    visit: Visiting,
    *,
    pool: Annotated[Text | None, Query(description="Only jobs of this pool.")] = None,
    kind: Annotated[Text | None, Query(description="Only jobs of this kind.")] = None,
    since: Annotated[Moment | None, Query(description="Ended at this instant or later.")] = None,
    until: Annotated[Moment | None, Query(description="Ended before this instant.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The last attempts of chains that are not tried any more, newest first."""
    which = FailedFilter(
        pool=pool,
        kind=kind,
        since=None if since is None else instant_of(since, field="since"),
        until=None if until is None else instant_of(until, field="until"),
    )
    before = position_from(cursor, "failed")
    found = await visit.queue.jobs.failed(owner=visit.sees, which=which, before=before, most=limit + 1)
    return page_answer(Page[Job], job_shape, found, limit, "failed", key=lambda job: job.id)


@router.post(
    "/failed/retry/preview",
    response_model=wire.RetryPreview,
    openapi_extra=for_role(Role.VIEWER),
    summary="Preview a bulk retry",
    response_description="What would be tried again.",
)
async def preview_retry(visit: Visiting, body: wire.RetryRequest) -> Response:
    """Exactly what it would touch, and at what cost. Nothing is saved."""
    max_cost = max_cost_of(body.max_cost)
    preview = await visit.queue.jobs.retry_failed(body.meant(), owner=visit.sees, cap=body.cap)
    return json_answer(wire.retry_preview_shape(preview, max_cost))


@router.post(
    "/failed/retry",
    response_model=wire.RetriedJobs,
    summary="Try failed jobs again",
    response_description="What was tried again, and what could not be.",
)
async def retry_failed(visit: Visiting, body: wire.RetryRequest) -> Response:
    """At most `cap` of them, each for itself: one that cannot be tried again is named with the reason.

    None is tried if they would cost more than `max_cost`.
    """
    done = await visit.queue.jobs.retry_failed(
        body.meant(), owner=visit.sees, cap=body.cap, max_cost=max_cost_of(body.max_cost), dry_run=False
    )
    return json_answer(wire.retried_shape(done))


@router.post(
    "/{id}/retry",
    status_code=201,
    response_model=JobDetail,
    summary="Try a job again",
    response_description="The new attempt.",
)
async def retry_job(visit: Visiting, id: Id) -> Response:
    """Any that has ended, completed and cancelled ones, too, with as many attempts as its policy allows."""
    return await _retried(visit, id)


@by_run.post(
    "/{run_id}/retry",
    status_code=201,
    response_model=JobDetail,
    summary="Try a job's run again",
    response_description="The new attempt.",
)
async def retry_job_run(visit: Visiting, run_id: RunOfJob) -> Response:
    """As for the job: each job has one run, and its id is the job's."""
    return await _retried(visit, run_id)


async def _retried(visit: Visit, job_id: str) -> Response:
    put = await visit.queue.jobs.retry(JobId(job_id), owner=visit.sees, key=visit.draw)
    return await job_answer(visit, put.job_id, 201)
