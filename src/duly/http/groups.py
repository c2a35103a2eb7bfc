"""Routes of groups: make, look, cancel, try again."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.domain.errors import InvalidInput
from duly.domain.groups import Group, GroupAlreadyEnded, GroupRunning, GroupStatus
from duly.domain.templates import UnknownTemplate
from duly.domain.tokens import Role
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import number_from, position_from
from duly.http.door import Door, Visit, Visiting, for_role
from duly.http.parameters import Cursor, Id, Limit
from duly.wire import group_retries as retries
from duly.wire import groups as wire
from duly.wire.estimates import max_cost_of
from duly.wire.jobs import Cancellation
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/groups", tags=["groups"], route_class=Door)


@router.post(
    "",
    status_code=201,
    response_model=wire.GroupDetail,
    summary="Make a group",
    response_description="The group, with all its members.",
)
async def create_group(visit: Visiting, body: wire.NewGroup) -> Response:
    """All members are right, or nothing is written. Its jobs are the caller's."""
    drawn = None if visit.draw is None else f"grp_{visit.draw}"
    try:
        group = await visit.queue.groups.create(body.meant(), owner=visit.caller.owner, group_id=drawn)
    except UnknownTemplate as unknown:
        place = [member.template for member in body.members].index(unknown.name)
        raise InvalidInput(f"members[{place}].template", str(unknown), fix="define it first") from None
    return await _answer(visit, group, 201)


@router.get("", response_model=Page[wire.Group], summary="List groups", response_description="A page of groups.")
async def list_groups(
    visit: Visiting,
    *,
    status: Annotated[GroupStatus | None, Query(description="Only groups of this status.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The last made first."""
    before = position_from(cursor, "groups")
    found = await visit.queue.groups.list(owner=visit.sees, status=status, before=before, most=limit + 1)
    return page_answer(Page[wire.Group], wire.group_shape, found, limit, "groups", key=lambda group: group.id)


@router.get(
    "/{id}",
    response_model=wire.GroupDetail,
    summary="Read a group",
    response_description="The group and how far it is.",
)
async def get_group(visit: Visiting, id: Id) -> Response:
    return await _answer(visit, await visit.queue.groups.get(id, owner=visit.sees))


@router.get(
    "/{id}/members",
    response_model=Page[wire.Member],
    summary="List a group's members",
    response_description="A page of members, in their places.",
)
async def list_members(visit: Visiting, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Each with its state and reason; a member's retries count as that member."""
    # A cursor counts what was seen, a member's place from 0.
    seen = number_from(cursor, "members")
    found = await visit.queue.groups.members(id, owner=visit.sees, after=seen - 1, most=limit + 1)
    return page_answer(
        Page[wire.Member], wire.member_shape, found, limit, "members", key=lambda member: member.place + 1
    )


@router.post(
    "/{id}/cancel",
    response_model=wire.GroupDetail,
    summary="Cancel a group",
    response_description="The group: cancelled, or about to be.",
)
async def cancel_group(visit: Visiting, id: Id, body: Cancellation | None = None) -> Response:
    """What has not started ends; what runs is asked to stop, and loses its claim if it does not in time."""
    reason = f"cancelled by {visit.caller.owner}" if body is None else body.reason
    try:
        group = await visit.queue.groups.cancel(id, owner=visit.sees, reason=reason)
    except GroupAlreadyEnded:
        if not visit.is_repeated:
            raise
        group = await visit.queue.groups.get(id, owner=visit.sees)
    return await _answer(visit, group)


@router.post(
    "/{id}/retry",
    response_model=wire.GroupDetail,
    summary="Try the failed part of a group again",
    response_description="The group, running again.",
)
async def retry_group(visit: Visiting, id: Id, body: retries.GroupRetry | None = None) -> Response:
    """Members that failed or were cancelled get new jobs, a sequence goes on from where it stopped."""
    asked = retries.GroupRetry() if body is None else body
    max_cost = max_cost_of(asked.max_cost)
    try:
        group = await visit.queue.groups.retry(id, owner=visit.sees, cap=asked.cap, max_cost=max_cost)
    except (GroupRunning, GroupAlreadyEnded):
        if not visit.is_repeated:
            raise
        group = await visit.queue.groups.get(id, owner=visit.sees)
    return await _answer(visit, group)


@router.post(
    "/{id}/retry/preview",
    response_model=retries.GroupRetryPreview,
    openapi_extra=for_role(Role.VIEWER),
    summary="Preview a group's retry",
    response_description="The members that would be tried again, and their cost.",
)
async def preview_group_retry(visit: Visiting, id: Id, body: retries.GroupRetry | None = None) -> Response:
    """Exactly what it would touch, and at what cost. Nothing is saved."""
    asked = retries.GroupRetry() if body is None else body
    max_cost = max_cost_of(asked.max_cost)
    again = await visit.queue.groups.preview_retry(id, owner=visit.sees)
    return json_answer(retries.group_retry_shape(again, cap=asked.cap, max_cost=max_cost))


async def _answer(visit: Visit, group: Group, status: int = 200) -> Response:
    progress = await visit.queue.groups.progress(group.id, owner=visit.sees)
    headers = {"Location": f"/api/v1/groups/{group.id}"} if status == 201 else None
    return json_answer(wire.group_detail_shape(group, progress), status, headers)
