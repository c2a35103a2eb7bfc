"""Routes for deployers and executors elsewhere: schedules of workflows, runs by key, and call-backs."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.errors import InvalidInput
from duly.domain.instants import instant_of
from duly.http.answers import json_answer
from duly.http.door import Door, Visit, Visiting
from duly.http.parameters import Id, Limit
from duly.wire import cron as wire
from duly.wire.shapes import Page

PREFIXES = ("/schedules/", "/run-launcher/")
router = APIRouter(tags=["cron"], route_class=Door)


@router.post(
    "/schedules/upsert",
    response_model=wire.Upserted,
    summary="Register a workflow's schedule",
    response_description="Its id, and its next slot.",
)
async def upsert_cron_schedule(visit: Visiting, body: wire.UpsertSchedule) -> Response:
    """Creates it, or makes it this; one that was paused is active again."""
    _require_own(visit, body.user_id)
    drawn = None if visit.draw is None else f"sch_{visit.draw}"
    return json_answer(wire.upserted_shape(await visit.queue.registrar.upsert(body.asked(drawn))))


@router.post(
    "/schedules/pause",
    status_code=204,
    response_class=Response,
    summary="Pause a workflow's schedule, or let it go on",
    response_description="It is so.",
)
async def pause_cron_schedule(visit: Visiting, body: wire.PauseSchedule) -> Response:
    await visit.queue.registrar.pause(body.schedule_id, body.paused, owner=visit.sees)
    return Response(status_code=204)


@router.get(
    "/schedules/{id}",
    response_model=wire.CronSchedule,
    summary="Read a workflow's schedule",
    response_description="The schedule, with its next five slots.",
)
async def get_cron_schedule(visit: Visiting, id: Id) -> Response:
    return json_answer(wire.schedule_shape(await visit.queue.registrar.get(id, owner=visit.sees)))


@router.delete(
    "/schedules/{id}",
    status_code=204,
    response_class=Response,
    summary="Delete a workflow's schedule",
    response_description="It is deleted.",
)
async def delete_cron_schedule(visit: Visiting, id: Id) -> Response:
    """Its runs stay on record."""
    await visit.queue.registrar.delete(id, owner=visit.sees)
    return Response(status_code=204)


@router.get(
    "/schedules/{id}/runs",
    response_model=Page[wire.CronRun],
    summary="List the last runs of a workflow's schedule",
    response_description="The newest slots first.",
)
async def list_cron_runs(visit: Visiting, id: Id, limit: Limit = 50) -> Response:
    runs = await visit.queue.registrar.runs(id, owner=visit.sees, most=limit)
    return json_answer(Page[wire.CronRun](items=[wire.run_shape(run) for run in runs]))


@router.post(
    "/run-launcher/start",
    response_model=bool,
    summary="Start a run of a workflow",
    response_description="Whether it runs or ran under this key.",
)
async def start_run(visit: Visiting, body: wire.StartRun) -> Response:
    """Once for each key, however often it is asked; false if there is no such workflow."""
    _require_own(visit, body.user_id)
    is_started = await visit.queue.launches.start(
        body.workflow_id,
        body.version,
        body.user_id,
        instant_of(body.scheduled_for, field="scheduled_for"),
        body.idempotency_key,
    )
    return Response("true" if is_started else "false", 200, media_type="application/json")


@router.post(
    "/run-launcher/callbacks/{id}",
    status_code=204,
    response_class=Response,
    summary="Say how a run goes",
    response_description="It is noted.",
)
async def call_back(visit: Visiting, id: Id, body: wire.RunCallBack) -> Response:
    """For the executor that a workflow names: started, or how it ended. The first end stands."""
    await visit.queue.dag_runs.call_back(id, body.said(), owner=visit.sees)
    return Response(status_code=204)


def _require_own(visit: Visit, user_id: str) -> None:
    if visit.sees is not None and user_id != visit.sees:
        raise InvalidInput("user_id", "is somebody else", fix="name yourself")
