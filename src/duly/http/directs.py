"""The route of direct calls: the caller waits for the answer, and takes its call along when it leaves."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from duly.application.directs import Directs, wait_of
from duly.domain.tickets import NoHandler
from duly.http.answers import json_answer
from duly.http.door import Door, Visiting
from duly.http.parameters import Id
from duly.wire.directs import DirectAnswer, DirectCall

router = APIRouter(prefix="/api/v1/direct", tags=["direct"], route_class=Door)


@router.post(
    "/{id}",
    response_model=DirectAnswer,
    summary="Call a template",
    response_description="What its handler answered.",
)
async def call_template(visit: Visiting, id: Id, body: DirectCall | None = None) -> Response:
    """Runs in the server, now or right after what runs in its pool, before the queue; no job is put.

    For servers that were started with a program. 504 when time is up: it was stopped, and its place is free again.
    """
    asked = DirectCall() if body is None else body
    calls = visit.request.app.state.direct_calls
    if calls is None:
        direct = await Directs(visit.queue.storage, visit.queue.dice).from_template(id, asked.params, owner=visit.sees)
        raise NoHandler(direct.job.kind)
    call = calls.call(id, asked.params, owner=visit.sees, wait=wait_of(asked.timeout_ms))
    return json_answer(DirectAnswer(result=await _unless_left(visit.request, call)))


async def _unless_left(request: Request, call: Any) -> Any:
    """A caller that hangs up wants no answer any more: its call is cancelled, and waited for."""
    calling = asyncio.ensure_future(call)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({calling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not calling.done():
            raise ClientDisconnect
        return calling.result()
    finally:
        for each in (calling, leaving):
            each.cancel()
        await asyncio.gather(calling, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
