"""Routes of pools: look, change limits and modes."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from duly.domain.ids import PoolName
from duly.domain.pools import UnknownPool
from duly.domain.tokens import Role
from duly.http.answers import json_answer
from duly.http.door import Door, Visiting, for_role
from duly.http.parameters import Text
from duly.http.problems import Refusal
from duly.wire import pools as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/pools", tags=["pools"], route_class=Door)
Name = Annotated[Text, Path(min_length=1, max_length=255)]


@router.get("", response_model=Page[wire.Pool], summary="List pools", response_description="Every pool.")
async def list_pools(visit: Visiting) -> Response:
    """All of them: pools are shared by everybody."""
    return json_answer(Page[wire.Pool](items=[wire.pool_shape(pool) for pool in await visit.queue.pools.all()]))


@router.get("/{name}", response_model=wire.Pool, summary="Read a pool", response_description="The pool.")
async def get_pool(visit: Visiting, name: Name) -> Response:
    try:
        pool = await visit.queue.pools.get(PoolName(name))
    except UnknownPool as unknown:
        raise not_found(unknown) from unknown
    return json_answer(wire.pool_shape(pool))


@router.patch(
    "/{name}",
    response_model=wire.Pool,
    openapi_extra=for_role(Role.ADMIN),
    summary="Change a pool",
    response_description="The pool as it is now.",
)
async def update_pool(visit: Visiting, name: Name, body: wire.PoolPatch) -> Response:
    """Its limit, or its mode: `paused` starts no jobs, `draining` takes none."""
    try:
        pool = await visit.queue.pools.change(PoolName(name), **body.given())
    except UnknownPool as unknown:
        raise not_found(unknown) from unknown
    return json_answer(wire.pool_shape(pool))


def not_found(unknown: UnknownPool) -> Refusal:
    return Refusal(404, f"there is no pool {unknown.name!r}", code=unknown.code)
