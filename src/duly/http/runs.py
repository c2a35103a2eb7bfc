"""Routes of runs: look, cancel, follow."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from duly.domain.ids import RunId
from duly.domain.runs import RunAlreadyEnded, RunKind, RunStatus
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import number_from, position_from
from duly.http.door import Door, Visit, Visiting
from duly.http.events import Place, RunEvents
from duly.http.parameters import Cursor, Id, Limit, Text
from duly.http.streams import EventStream
from duly.wire import runs as wire
from duly.wire.executions import GraphEvent, event_shape
from duly.wire.jobs import Cancellation
from duly.wire.shapes import Page
from duly.wire.system import Explanation, explanation_shape

router = APIRouter(prefix="/api/v1/runs", tags=["runs"], route_class=Door)

StatusAsked = Annotated[RunStatus | None, Query(description="Only runs of this status.")]
KindAsked = Annotated[RunKind | None, Query(description="Only runs of this kind.")]
_STREAM = {
    "description": "Events `status`, `log`, `progress`, `graph` (what its graph tells), `review`, `end` as the last.",
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": 'event: log\nid: 1.7\ndata: {"seq":7,"text":"fetched 12 pages"}\n\n',
        }
    },
}


@router.get("", response_model=Page[wire.Run], summary="List runs", response_description="A page of runs.")
async def list_runs(
    visit: Visiting,
    *,
    schedule_id: Annotated[Text | None, Query(description="Only runs of this schedule.")] = None,
    status: StatusAsked = None,
    kind: KindAsked = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The last opened first."""
    return await listed_runs(visit, schedule_id=schedule_id, status=status, kind=kind, limit=limit, cursor=cursor)


async def listed_runs(
    visit: Visit, *, schedule_id: str | None, status: RunStatus | None, kind: RunKind | None, limit: int, cursor: Cursor
) -> Response:
    found = await visit.queue.runs.list(
        owner=visit.sees,
        schedule_id=schedule_id,
        status=status,
        kind=kind,
        before=position_from(cursor, "runs"),
        most=limit + 1,
    )
    return page_answer(Page[wire.Run], wire.run_shape, found, limit, "runs", key=lambda run: run.id)


@router.get(
    "/{id}",
    response_model=wire.RunDetail,
    summary="Read a run and its attempts",
    response_description="The run, with its attempts.",
)
async def get_run(visit: Visiting, id: Id) -> Response:
    run = await visit.queue.runs.get(id, owner=visit.sees)
    attempts = await visit.queue.runs.attempts(id, owner=visit.sees)
    return json_answer(wire.run_detail_shape(run, attempts, visit.queue.trace_url(run.trace_id)))


@router.get(
    "/{id}/graph-events",
    response_model=Page[GraphEvent],
    summary="List what a run's graph told",
    response_description="A page of events, the first one first.",
)
async def list_graph_events(visit: Visiting, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Through all attempts at its execution, and while it runs; none, unless the run executes a graph."""
    found = await visit.queue.execution_events.of_run(
        id, owner=visit.sees, after=number_from(cursor, "graph-events"), most=limit + 1
    )
    return page_answer(Page[GraphEvent], event_shape, found, limit, "graph-events", key=lambda event: event.seq)


@router.get(
    "/{id}/why",
    response_model=Explanation,
    summary="Ask why a run is as it is",
    response_description="The answer in one word, and in sentences.",
)
async def explain_run(visit: Visiting, id: Id) -> Response:
    """What became of it, under whose grant, what was held for it and what it has spent, from recorded facts."""
    return json_answer(explanation_shape(await visit.queue.why.run(RunId(id), owner=visit.sees)))


@router.post(
    "/{id}/cancel",
    response_model=wire.Run,
    summary="Cancel a run",
    response_description="The run: cancelled, or asked to stop.",
)
async def cancel_run(visit: Visiting, id: Id, body: Cancellation | None = None) -> Response:
    """One that waits has ended then; one that runs is asked to stop, and stopped if it does not in time."""
    reason = f"cancelled by {visit.caller.owner}" if body is None else body.reason
    try:
        run = await visit.queue.runs.cancel(id, owner=visit.sees, reason=reason)
    except RunAlreadyEnded:
        run = await visit.queue.runs.get(id, owner=visit.sees)
        if not visit.is_repeated or run.status is not RunStatus.CANCELLED:
            raise
    return json_answer(wire.run_shape(run))


@router.get(
    "/{id}/events",
    response_class=StreamingResponse,
    responses={200: _STREAM, 204: {"description": "The run has ended, and all of it was sent before."}},
    summary="Follow a run",
)
async def follow_run(
    visit: Visiting,
    id: Id,
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event seen: no line after it is lost or repeated.")
    ] = None,
) -> Response:
    """Server-sent events until the run has ended. What comes before the last event seen is not sent again.

    A token has at most 32 of them open at a server, unless that is set otherwise, and the next one is refused with 429.
    They end when their token is revoked or expires.
    """
    run = await visit.queue.runs.get(id, owner=visit.sees)
    place = Place.of(last_event_id)
    if place.has_ended and run.status.is_terminal:
        return Response(status_code=204)
    events = RunEvents(visit.queue, id, visit.sees, place, visit.request.app.state.closing, visit.require_welcome)
    return EventStream(events.stream(), visit.request.app.state.streams.enter(visit.caller))
