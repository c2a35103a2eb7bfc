"""Routes of grants: make, look, see what would stop, revoke."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.billing import UnknownAccount
from duly.domain.instants import instant_of
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visiting
from duly.http.parameters import Cursor, Id, Limit
from duly.http.problems import Refusal
from duly.wire import money as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/grants", tags=["grants"], route_class=Door)


@router.post("", status_code=201, response_model=wire.Grant, summary="Make a grant", response_description="The grant.")
async def create_grant(visit: Visiting, body: wire.NewGrant) -> Response:
    """Leave to run certain graphs at an account's cost. Schedules of graphs that name none are given one."""
    expires_at = None if body.expires_at is None else instant_of(body.expires_at, field="expires_at")
    try:
        grant = await visit.queue.grants.create(
            owner=visit.sees,
            account_id=body.account_id,
            scopes=body.scopes,
            expires_at=expires_at,
            user_id=body.user_id,
            grant_id=None if visit.draw is None else f"grant_{visit.draw}",
        )
    except UnknownAccount as unknown:
        raise Refusal(422, str(unknown), code=unknown.code, errors=(("/account_id", str(unknown)),)) from unknown
    return json_answer(wire.grant_shape(grant), 201)


@router.get("", response_model=Page[wire.Grant], summary="List grants", response_description="A page of grants.")
async def list_grants(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of id, revoked ones too, each with when it was last used."""
    seen = position_from(cursor, "grants") or ""
    unseen = [grant for grant in await visit.queue.grants.list(owner=visit.sees) if grant.id > seen]
    return page_answer(Page[wire.Grant], wire.grant_shape, unseen, limit, "grants", key=lambda grant: grant.id)


@router.get(
    "/{id}",
    response_model=wire.GrantDetail,
    summary="Read a grant",
    response_description="The grant, and which schedules would stop without it.",
)
async def get_grant(visit: Visiting, id: Id) -> Response:
    """Look here before revoking it: `stops` are the active schedules that run under it."""
    return json_answer(wire.grant_detail_shape(await visit.queue.grants.blast_radius(id, owner=visit.sees)))


@router.delete(
    "/{id}",
    response_model=wire.GrantDetail,
    summary="Revoke a grant",
    response_description="The grant, revoked, and which schedules stop.",
)
async def revoke_grant(visit: Visiting, id: Id) -> Response:
    """Nothing begins under it any more. It stays on the list, with the time; revoking it again changes nothing."""
    await visit.queue.grants.revoke(id, owner=visit.sees)
    return json_answer(wire.grant_detail_shape(await visit.queue.grants.blast_radius(id, owner=visit.sees)))
