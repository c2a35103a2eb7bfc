"""Routes of schedules: define, look, change, delete."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.domain.errors import InvalidInput
from duly.domain.graph_targets import is_alike
from duly.domain.ids import ScheduleId
from duly.domain.schedules import Schedule, ScheduleChanged, ScheduleExists, UnknownSchedule
from duly.domain.sessions import warning_about_schedule
from duly.http.answers import json_answer, page_answer, schedule_answer
from duly.http.cursors import cut, number_from, position_from
from duly.http.door import Door, Visit, Visiting
from duly.http.parameters import Cursor, Id, IfMatch, IfNoneMatch, Limit, Withdraw, revision_from
from duly.http.problems import Refusal
from duly.wire import plans
from duly.wire import schedules as wire
from duly.wire.previews import Fire, fire_shape
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/schedules", tags=["schedules"], route_class=Door)
_MOST_TRIES = 5
_NOT_IDS = (".", "..", "preview")


@router.post(
    "",
    status_code=201,
    response_model=wire.Schedule,
    summary="Create a schedule",
    response_description="The schedule as it was made.",
)
async def create_schedule(visit: Visiting, body: wire.NewSchedule) -> Response:
    """Its slots begin strictly after now. An id that was deleted goes on where it ended."""
    drawn = None if visit.draw is None else f"sch_{visit.draw}"
    schedule_id = drawn if body.id is None else _addressable(body.id)
    asked: dict[str, Any] = {
        "cadence": plans.cadence_of(body),
        "target": plans.target_of(body),
        "policies": plans.policies_of(body, visit.queue.schedules.defaults),
    }
    try:
        schedule = await visit.queue.schedules.create(
            owner=visit.caller.owner, schedule_id=schedule_id, enabled=body.enabled, **asked
        )
    except ScheduleExists as taken:
        schedule = await _made_before(visit, taken, asked)
    return schedule_answer(await _shape(visit, schedule), 201)


async def _made_before(visit: Visit, taken: ScheduleExists, asked: Mapping[str, Any]) -> Schedule:
    """What an earlier execution of this request made, which could not say so; else its id is simply taken."""
    if not visit.is_repeated:
        raise taken
    try:
        found = await visit.queue.schedules.get(taken.schedule_id, owner=visit.caller.owner)
    except UnknownSchedule:
        raise taken from None
    if not is_alike(found.target, asked["target"]) or any(
        getattr(found, name) != asked[name] for name in ("cadence", "policies")
    ):
        raise taken
    return found


@router.get(
    "",
    response_model=Page[wire.Schedule],
    summary="List schedules, each with its last run",
    response_description="A page of schedules.",
)
async def list_schedules(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of id."""
    after = position_from(cursor, "schedules")
    found = await visit.queue.schedules.list(owner=visit.sees, after=after, most=limit + 1)
    page, following = cut(found, limit, "schedules", lambda schedule: schedule.id)
    return json_answer(Page[wire.Schedule](items=await _shapes(visit, page), next_cursor=following))


@router.get(
    "/{id}",
    response_model=wire.Schedule,
    summary="Read a schedule",
    response_description="The schedule, with its ETag.",
)
async def get_schedule(visit: Visiting, id: Id, if_none_match: IfNoneMatch = None) -> Response:
    schedule = await visit.queue.schedules.get(id, owner=visit.sees)
    return schedule_answer(await _shape(visit, schedule), if_none_match=if_none_match)


@router.patch(
    "/{id}",
    response_model=wire.Schedule,
    summary="Change a schedule",
    response_description="The schedule as it is now.",
)
async def update_schedule(
    visit: Visiting,
    id: Id,
    body: wire.SchedulePatch,
    if_match: IfMatch = None,
    withdraw: Withdraw = False,
) -> Response:
    """What is named is changed from the next slot on; `enabled` also pauses and resumes, in the same revision."""
    expected = revision_from(if_match)
    tries_left = _MOST_TRIES
    while True:
        read = await visit.queue.schedules.get(id, owner=visit.sees)
        _require_match(read, expected)
        tries_left -= 1
        try:
            return schedule_answer(await _shape(visit, await _edit(visit, read, body, withdraw=withdraw)))
        except ScheduleChanged:
            # Read again; if the caller named a revision, that look says that it is another one by now.
            if not tries_left:
                raise


async def _edit(visit: Visit, read: Schedule, patch: wire.SchedulePatch, *, withdraw: bool) -> Schedule:
    changes = plans.changes_of(read, patch)
    if not changes and not withdraw:
        return read
    return await visit.queue.schedules.edit(
        read.id, owner=visit.sees, expected_revision=read.revision, withdraw=withdraw, **changes
    )


@router.delete(
    "/{id}",
    status_code=204,
    response_class=Response,
    summary="Delete a schedule",
    response_description="It is deleted.",
)
async def delete_schedule(visit: Visiting, id: Id, if_match: IfMatch = None, withdraw: Withdraw = False) -> Response:
    """Its runs stay on record."""
    expected = revision_from(if_match)
    try:
        await visit.queue.schedules.delete(id, owner=visit.sees, expected_revision=expected, withdraw=withdraw)
    except ScheduleChanged as changed:
        raise _precondition_failed(changed) from changed
    return Response(status_code=204)


@router.post(
    "/{id}/pause",
    response_model=wire.Schedule,
    summary="Pause a schedule",
    response_description="The schedule, paused.",
)
async def pause_schedule(visit: Visiting, id: Id, if_match: IfMatch = None, withdraw: Withdraw = False) -> Response:
    """Opens no more slots; runs that were opened go on, unless those that wait are withdrawn."""
    expected = revision_from(if_match)
    try:
        paused = await visit.queue.schedules.pause(id, owner=visit.sees, expected_revision=expected, withdraw=withdraw)
    except ScheduleChanged as changed:
        raise _precondition_failed(changed) from changed
    return schedule_answer(await _shape(visit, paused))


@router.post(
    "/{id}/resume",
    response_model=wire.Schedule,
    summary="Resume a schedule",
    response_description="The schedule, active again.",
)
async def resume_schedule(visit: Visiting, id: Id, if_match: IfMatch = None) -> Response:
    """Slots open again from now on; those of the pause are not made up for."""
    try:
        resumed = await visit.queue.schedules.resume(id, owner=visit.sees, expected_revision=revision_from(if_match))
    except ScheduleChanged as changed:
        raise _precondition_failed(changed) from changed
    return schedule_answer(await _shape(visit, resumed))


@router.get(
    "/{id}/upcoming",
    response_model=Page[Fire],
    summary="Show the next slots",
    response_description="The next slots, soonest first.",
)
async def list_upcoming(visit: Visiting, id: Id, limit: Annotated[int, Query(ge=1, le=200)] = 5) -> Response:
    """When each fires; none, unless the schedule is active."""
    fires = await visit.queue.schedules.upcoming(id, owner=visit.sees, most=limit)
    return json_answer(Page[Fire](items=[fire_shape(fire) for fire in fires]))


@router.get(
    "/{id}/revisions",
    response_model=Page[wire.Revision],
    summary="Show every version of a schedule",
    response_description="A page of versions.",
)
async def list_revisions(visit: Visiting, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """First to last, of a deleted schedule too."""
    seen = number_from(cursor, "revisions")
    revisions = await visit.queue.schedules.revisions(id, owner=visit.sees)
    unseen = [revision for revision in revisions if revision.number > seen]
    return page_answer(
        Page[wire.Revision], wire.revision_shape, unseen, limit, "revisions", key=lambda revision: revision.number
    )


def _addressable(schedule_id: str) -> str:
    """An id that a path can name."""
    if "/" in schedule_id or schedule_id in _NOT_IDS:
        raise InvalidInput("id", "cannot stand in a path", fix=f"use no slash, and none of {' '.join(_NOT_IDS)}")
    return schedule_id


async def _shape(visit: Visit, schedule: Schedule) -> wire.Schedule:
    (shape,) = await _shapes(visit, [schedule])
    return shape


async def _shapes(visit: Visit, schedules: Sequence[Schedule]) -> list[wire.Schedule]:
    """Those that never ran have no last run to look for."""
    ran = [ScheduleId(schedule.id) for schedule in schedules if schedule.last_run_at is not None]
    last = await visit.queue.runs.last_of(ran) if ran else {}
    known = await visit.queue.sessions.live_kinds()
    return [
        wire.schedule_shape(schedule, last.get(schedule.id), warning_about_schedule(schedule, known))
        for schedule in schedules
    ]


def _require_match(schedule: Schedule, expected: int | None) -> None:
    try:
        schedule.require_revision(expected)
    except ScheduleChanged as changed:
        raise _precondition_failed(changed) from changed


def _precondition_failed(changed: ScheduleChanged) -> Refusal:
    return Refusal(412, str(changed), code=changed.code)
