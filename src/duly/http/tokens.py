"""Routes of tokens: make, list, revoke."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.instants import instant_of
from duly.domain.tokens import Role
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visiting, for_role
from duly.http.parameters import Cursor, Id, Limit
from duly.http.problems import Refusal
from duly.wire import tokens as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/tokens", tags=["tokens"], route_class=Door)
_ADMIN = for_role(Role.ADMIN)


@router.post(
    "",
    status_code=201,
    response_model=wire.CreatedToken,
    openapi_extra=_ADMIN,
    summary="Make a token",
    response_description="The token, with its secret.",
)
async def create_token(visit: Visiting, body: wire.NewToken) -> Response:
    """Its secret is shown this once. What an idempotency key replays is the token without it: no secret is kept."""
    if visit.caller.token_id is None:
        why = "anybody on this machine could make one that outlives this server"
        raise Refusal(403, f"{why}; use `duly token add`, which needs the database", code="token_needed")
    expires_at = None if body.expires_at is None else instant_of(body.expires_at, field="expires_at")
    token, secret = await visit.queue.tokens.create(
        owner=body.owner, role=body.role, name=body.name, expires_at=expires_at
    )
    visit.kept_body = wire.created_token_shape(token, None).model_dump_json().encode()
    return json_answer(wire.created_token_shape(token, secret), 201)


@router.get(
    "",
    response_model=Page[wire.Token],
    openapi_extra=_ADMIN,
    summary="List tokens",
    response_description="A page of tokens.",
)
async def list_tokens(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of id, revoked ones too; never a secret."""
    seen = position_from(cursor, "tokens") or ""
    unseen = [token for token in await visit.queue.tokens.list(owner=None) if token.id > seen]
    return page_answer(Page[wire.Token], wire.token_shape, unseen, limit, "tokens", key=lambda token: token.id)


@router.delete(
    "/{id}",
    response_model=wire.Token,
    openapi_extra=_ADMIN,
    summary="Revoke a token",
    response_description="The token, revoked.",
)
async def revoke_token(visit: Visiting, id: Id) -> Response:
    """It stays on the list, with the time. Revoking it again changes nothing."""
    return json_answer(wire.token_shape(await visit.queue.tokens.revoke(id, owner=None)))
