"""Routes of jobs: put, look, cancel, read what they said."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.jobs import FinishedJob, Job, JobAlreadyFinished, JobState, JobStatus, PutOutcome
from duly.domain.tokens import Role
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import number_from, position_from
from duly.http.door import Door, Visit, Visiting, for_role
from duly.http.parameters import Cursor, Flag, Id, Limit, Text
from duly.wire import jobs as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=Door)


@router.post(
    "",
    status_code=201,
    response_model=wire.JobDetail,
    openapi_extra=for_role(Role.ADMIN),
    responses={
        200: {
            "model": wire.JobDetail,
            "description": "A live job had the key: this one, which now stands for what was asked.",
        }
    },
    summary="Put a job",
    response_description="The job, which is durable now.",
)
async def put_job(visit: Visiting, body: wire.NewJob) -> Response:
    """For admins: a job that no schedule put has no owner. Others trigger a schedule instead.

    Under a `key` that a live job has, that job is answered, with 200 instead of 201.
    """
    drawn = None if visit.draw is None else JobId(f"job_{visit.draw}")
    put = await visit.queue.jobs.put(wire.new_job_of(body), job_id=drawn)
    return await job_answer(visit, put.job_id, 201 if put.outcome is PutOutcome.CREATED else 200)


async def job_answer(visit: Visit, job_id: JobId, status: int = 200) -> Response:
    """A job as it is now; where one was asked for, with its address."""
    headers = {"Location": f"/api/v1/jobs/{job_id}"} if visit.request.method == "POST" else None
    return json_answer(await job_detail(visit, job_id), status, headers)


@router.get("", response_model=Page[wire.Job], summary="List jobs", response_description="A page of jobs.")
async def list_jobs(
    visit: Visiting,
    *,
    ended: Annotated[Flag, Query(description="Ended jobs, the last put first, instead of live ones.")] = False,
    pool: Annotated[Text | None, Query(description="Only jobs of this pool.")] = None,
    state: Annotated[JobState | None, Query(description="Only live jobs in this state.")] = None,
    status: Annotated[
        JobStatus | None, Query(description="QUEUED or RUNNING of live jobs, else of ended ones.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Live jobs in order of id. Those that no schedule put are for admins to see."""
    if status is JobStatus.RUNNING and not ended and state is None:
        state, status = JobState.RUNNING, None
    if status is JobStatus.QUEUED and not ended and state is None:
        return await _queued(visit, pool=pool, limit=limit, cursor=cursor)
    _require_fit(ended=ended, state=state, status=status)
    listing = "ended-jobs" if ended else "jobs"
    position = position_from(cursor, listing)
    found: list[Job | FinishedJob]
    if ended:
        found = [
            *await visit.queue.jobs.ended(owner=visit.sees, pool=pool, status=status, before=position, most=limit + 1)
        ]
    else:
        found = [*await visit.queue.jobs.list(owner=visit.sees, pool=pool, state=state, after=position, most=limit + 1)]
    return page_answer(Page[wire.Job], wire.job_shape, found, limit, listing, key=lambda job: job.id)


async def _queued(visit: Visit, *, pool: str | None, limit: int, cursor: str | None) -> Response:
    """Live jobs that do not run: those that do are passed over, and never more than there are executors."""
    last, queued = position_from(cursor, "jobs"), list[Job]()
    while len(queued) <= limit:
        page = await visit.queue.jobs.list(owner=visit.sees, pool=pool, after=last, most=limit + 1)
        queued += [job for job in page if job.state is not JobState.RUNNING]
        if len(page) <= limit:
            break
        last = page[-1].id
    return page_answer(Page[wire.Job], wire.job_shape, queued, limit, "jobs", key=lambda job: job.id)


def _require_fit(*, ended: bool, state: JobState | None, status: JobStatus | None) -> None:
    if ended and state is not None:
        raise InvalidInput("query.state", "is of live jobs only", fix="ask for a status, or leave ended out")
    if not ended and status is not None:
        fix = "add ended=true" if state is None else "ask for a state or a status"
        raise InvalidInput("query.status", "is of ended jobs only", fix=fix)


@router.get(
    "/{id}",
    response_model=wire.JobDetail,
    summary="Read a job",
    response_description="The job, with its progress and artifacts.",
)
async def get_job(visit: Visiting, id: Id) -> Response:
    return json_answer(await job_detail(visit, JobId(id)))


async def job_detail(visit: Visit, job_id: JobId) -> wire.JobDetail:
    job = await visit.queue.jobs.find(job_id, owner=visit.sees)
    progress = await visit.queue.logs.progress(job_id)
    artifacts = await visit.queue.logs.artifacts(job_id)
    is_queued = isinstance(job, Job) and not job.is_locked
    warning = await visit.queue.sessions.warning_about(job.kind) if is_queued else None
    return wire.job_detail_shape(job, progress, artifacts, warning)


@router.post(
    "/{id}/cancel",
    response_model=wire.JobDetail,
    summary="Cancel a job",
    response_description="The job: cancelled, or asked to stop.",
)
async def cancel_job(visit: Visiting, id: Id, body: wire.Cancellation | None = None) -> Response:
    """One that nobody has claimed has ended then; one that runs is asked to stop."""
    reason = f"cancelled by {visit.caller.owner}" if body is None else body.reason
    try:
        await visit.queue.jobs.cancel(JobId(id), reason=reason, owner=visit.sees)
    except JobAlreadyFinished:
        if not visit.is_repeated:
            raise
    return json_answer(await job_detail(visit, JobId(id)))


@router.get(
    "/{id}/log",
    response_model=Page[wire.LoggedLine],
    summary="Read what a job said",
    response_description="A page of lines.",
)
async def get_job_log(visit: Visiting, id: Id, limit: Limit = 200, cursor: Cursor = None) -> Response:
    """In order; while it runs, follow its run's events instead."""
    job = await visit.queue.jobs.find(JobId(id), owner=visit.sees)
    lines = await visit.queue.logs.lines(job.id, after=number_from(cursor, "log"), most=limit + 1)
    return page_answer(Page[wire.LoggedLine], wire.line_shape, lines, limit, "log", key=lambda line: line.seq)
