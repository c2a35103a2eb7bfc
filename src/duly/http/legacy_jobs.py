"""The older routes of jobs, kept while callers move: each answer says that they end, when, and what to use instead."""

from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from duly.domain.ids import JobId
from duly.domain.jobs import JobAlreadyFinished
from duly.domain.tokens import Role
from duly.http.answers import json_answer
from duly.http.door import Door, Handler, Visit, Visiting, for_role
from duly.http.parameters import Id, Limit
from duly.wire import legacy_jobs as wire
from duly.wire.jobs import new_job_of

# 2026-11-01 and 2027-11-01, as RFC 9745 and RFC 8594 write them.
DEPRECATED_SINCE = "@1793491200"
ENDS_AT = "Mon, 01 Nov 2027 00:00:00 GMT"


class LegacyDoor(Door):
    """As every door, with what announces its end on whatever comes out, problems too."""

    def get_route_handler(self) -> Handler:
        enter = super().get_route_handler()

        async def announced(request: Request) -> Response:
            response = await enter(request)
            # Quoted anew: what a path may say, a header may not.
            successor = f"/api/v1{quote(request.scope['path'])}"
            if request.method == "DELETE":
                successor += "/cancel"
            response.headers["Deprecation"] = DEPRECATED_SINCE
            response.headers["Sunset"] = ENDS_AT
            response.headers["Link"] = f'<{successor}>; rel="successor-version", </docs#jobs>; rel="deprecation"'
            return response

        return announced


router = APIRouter(prefix="/jobs", tags=["legacy"], route_class=LegacyDoor, deprecated=True)


@router.post(
    "",
    status_code=201,
    response_model=wire.LegacyJob,
    openapi_extra=for_role(Role.ADMIN),
    summary="Put a job, as before",
    response_description="The job.",
)
async def legacy_put_job(visit: Visiting, body: wire.LegacyNewJob) -> Response:
    """Use `POST /api/v1/jobs`."""
    drawn = None if visit.draw is None else JobId(f"job_{visit.draw}")
    put = await visit.queue.jobs.put(new_job_of(body.meant()), job_id=drawn)
    return await _answer(visit, put.job_id, 201)


@router.get(
    "",
    response_model=wire.LegacyJobs,
    summary="List jobs, as before",
    response_description="Live jobs, then ended ones, the last put first.",
)
async def legacy_list_jobs(visit: Visiting, limit: Limit = 50) -> Response:
    """Use `GET /api/v1/jobs`."""
    live = await visit.queue.jobs.list(owner=visit.sees, most=limit)
    ended = await visit.queue.jobs.ended(owner=visit.sees, most=limit)
    shapes = [*map(wire.legacy_shape, live), *map(wire.legacy_shape, ended)]
    return json_answer(wire.LegacyJobs(jobs=shapes[:limit]))


@router.get("/{id}", response_model=wire.LegacyJob, summary="Read a job, as before", response_description="The job.")
async def legacy_get_job(visit: Visiting, id: Id) -> Response:
    """Use `GET /api/v1/jobs/{id}`."""
    return await _answer(visit, JobId(id))


@router.post(
    "/{id}/cancel",
    response_model=wire.LegacyJob,
    summary="Cancel a job, as before",
    response_description="The job: cancelled, or asked to stop.",
)
async def legacy_cancel_job(visit: Visiting, id: Id) -> Response:
    """Use `POST /api/v1/jobs/{id}/cancel`."""
    return await _cancelled(visit, JobId(id))


@router.delete(
    "/{id}",
    response_model=wire.LegacyJob,
    summary="Cancel a job by deleting it, as before",
    response_description="The job: cancelled, or asked to stop.",
)
async def legacy_delete_job(visit: Visiting, id: Id) -> Response:
    """Use `POST /api/v1/jobs/{id}/cancel`."""
    return await _cancelled(visit, JobId(id))


@router.post(
    "/{id}/retry",
    status_code=201,
    response_model=wire.LegacyJob,
    summary="Try a job again, as before",
    response_description="The new attempt.",
)
async def legacy_retry_job(visit: Visiting, id: Id) -> Response:
    """Use `POST /api/v1/jobs/{id}/retry`."""
    put = await visit.queue.jobs.retry(JobId(id), owner=visit.sees, key=visit.draw)
    return await _answer(visit, put.job_id, 201)


async def _cancelled(visit: Visit, job_id: JobId) -> Response:
    try:
        await visit.queue.jobs.cancel(job_id, reason=f"cancelled by {visit.caller.owner}", owner=visit.sees)
    except JobAlreadyFinished:
        if not visit.is_repeated:
            raise
    return await _answer(visit, job_id)


async def _answer(visit: Visit, job_id: JobId, status: int = 200) -> Response:
    return json_answer(wire.legacy_shape(await visit.queue.jobs.find(job_id, owner=visit.sees)), status)
