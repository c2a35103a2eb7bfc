"""Routes that ask schedules for runs, or about them: by hand, of the past, and why."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.errors import InvalidInput
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, instant_of, moment_of
from duly.domain.schedules import require_fires
from duly.domain.tokens import Role
from duly.http.answers import json_answer
from duly.http.door import Door, Visiting, for_role
from duly.http.parameters import Cursor, Id, Limit, SlotAsked
from duly.http.runs import KindAsked, StatusAsked, listed_runs
from duly.wire import plans, previews, runs
from duly.wire.estimates import max_cost_of
from duly.wire.shapes import Page
from duly.wire.system import Explanation, explanation_shape

router = APIRouter(prefix="/api/v1/schedules", tags=["schedules"], route_class=Door)


@router.post(
    "/preview",
    response_model=previews.PreviewedCadence,
    openapi_extra=for_role(Role.VIEWER),
    summary="Preview a cadence",
    response_description="The cadence in words, and when it would fire.",
)
async def preview_cadence(visit: Visiting, body: previews.CadencePreview) -> Response:
    """In words, with its next fires and what clock changes do to them. Nothing is saved."""
    cadence = plans.cadence_of(body)
    now = visit.queue.storage.clock.now()
    require_fires(cadence, after=now // SECOND)
    return json_answer(previews.preview_shape(cadence, body.count, now=moment_of(now)))


@router.post(
    "/{id}/trigger",
    status_code=201,
    response_model=runs.Run,
    summary="Run a schedule now",
    response_description="The run that was opened.",
)
async def trigger_schedule(visit: Visiting, id: Id) -> Response:
    """Paused or not, in the schedule's lane."""
    run = await visit.queue.schedules.run_now(id, owner=visit.sees, key=visit.draw)
    return json_answer(runs.run_shape(run), 201, {"Location": f"/api/v1/runs/{run.id}"})


@router.post(
    "/{id}/backfill",
    status_code=201,
    response_model=previews.Backfilled,
    summary="Run fires of the past",
    response_description="The runs that were opened, oldest first.",
)
async def backfill_schedule(visit: Visiting, id: Id, body: previews.BackfillRequest) -> Response:
    """Oldest first, in the schedule's lane; refused beyond the cap, or beyond what it may cost."""
    backfilled = await visit.queue.schedules.backfill(
        id,
        owner=visit.sees,
        start=body.start,
        end=body.end,
        cap=body.cap,
        max_cost=max_cost_of(body.max_cost),
        expected_revision=body.expected_revision,
        key=visit.draw,
    )
    return json_answer(previews.backfilled_shape(list(backfilled)), 201)


@router.post(
    "/{id}/backfill/preview",
    response_model=previews.BackfillPreview,
    openapi_extra=for_role(Role.VIEWER),
    summary="Preview a backfill",
    response_description="The slots that would run, and whether the cap allows it.",
)
async def preview_backfill(visit: Visiting, id: Id, body: previews.BackfillRequest) -> Response:
    """Exactly what it would run, and at what cost. Nothing is saved."""
    max_cost = max_cost_of(body.max_cost)
    backfill = await visit.queue.schedules.preview_backfill(
        id, owner=visit.sees, start=body.start, end=body.end, cap=body.cap
    )
    return json_answer(previews.backfill_preview_shape(backfill, max_cost))


@router.get(
    "/{id}/runs",
    response_model=Page[runs.Run],
    summary="List a schedule's runs",
    response_description="A page of runs.",
)
async def list_schedule_runs(
    visit: Visiting,
    id: Id,
    *,
    status: StatusAsked = None,
    kind: KindAsked = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The last opened first, of a deleted schedule too."""
    return await listed_runs(visit, schedule_id=id, status=status, kind=kind, limit=limit, cursor=cursor)


@router.get(
    "/{id}/why",
    response_model=Explanation,
    summary="Ask why",
    response_description="The answer in one word, and in sentences.",
)
async def explain_schedule(visit: Visiting, id: Id, slot: SlotAsked = None) -> Response:
    """Why the schedule is as it is, or what became of one slot, from recorded facts."""
    schedule_id = ScheduleId(id)
    if slot is None:
        return json_answer(explanation_shape(await visit.queue.why.schedule(schedule_id, owner=visit.sees)))
    second, fraction = divmod(instant_of(slot, field="slot"), SECOND)
    if fraction:
        raise InvalidInput("query.slot", "is not a whole second, and every slot is", fix="leave the fraction out")
    return json_answer(explanation_shape(await visit.queue.why.slot(schedule_id, second, owner=visit.sees)))
