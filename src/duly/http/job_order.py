"""Routes of the queue's order: the list is what will run, and moves change it."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import Job, Place
from duly.domain.pools import UnknownPool
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import InvalidCursor, position_from
from duly.http.door import Door, Visit, Visiting
from duly.http.jobs import job_answer
from duly.http.parameters import Cursor, Id, Limit
from duly.http.pools import Name, not_found
from duly.http.problems import Refusal
from duly.wire import job_changes as wire
from duly.wire.jobs import JobDetail
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=Door)
of_pools = APIRouter(prefix="/api/v1/pools", tags=["pools"], route_class=Door)
_MOST_DIGITS = 19


@router.post(
    "/reorder",
    response_model=Page[wire.QueuedJob],
    summary="Put jobs in order",
    response_description="The jobs, with their places now.",
)
async def reorder_jobs(visit: Visiting, body: wire.Arrangement) -> Response:
    """All of them or none: they run one after the other, from the first place that one of them has."""
    ids = [await _seen(visit, job_id) for job_id in body.jobs]
    await visit.queue.order.arrange(ids)
    job = await visit.queue.jobs.find(ids[0], owner=visit.sees)
    places = await visit.queue.jobs.places(job.pool, owner=visit.sees)
    named = [wire.queued_job_shape(place, each) for place, each in places if each.id in set(ids)]
    return json_answer(Page[wire.QueuedJob](items=named))


@router.post(
    "/{id}/move", response_model=JobDetail, summary="Move a job", response_description="The job, in its new place."
)
async def move_job(visit: Visiting, id: Id, body: wire.Move) -> Response:
    """Within its pool, while nobody has it: before, after or instead of another, to a place, or to the front."""
    job_id = await _seen(visit, id)
    how, where = body.given()
    order = visit.queue.order
    if how == "swap" and visit.is_repeated:
        why = "the swap may have been made before the server could say so, and once more would undo it"
        raise Refusal(409, f"{why}; look at the queue, then ask again under another key", code="swap_uncertain")
    if how in ("before", "after", "swap"):
        other = await _seen(visit, where)
        await {"before": order.before, "after": order.after, "swap": order.swap}[how](job_id, other)
    elif how == "place":
        await order.to_place(job_id, where)
    elif how == "priority":
        await order.reprioritise(job_id, where)
    else:
        await order.to_front(job_id)
    return await job_answer(visit, job_id)


@of_pools.get(
    "/{name}/queue",
    response_model=Page[wire.QueuedJob],
    summary="Show what a pool will run",
    response_description="A page of jobs, in the order in which they will run.",
)
async def list_queue(visit: Visiting, name: Name, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """What is ready, the next one first; places count everybody's jobs, an owner is shown its own."""
    after = _place_from(cursor)
    try:
        pool = await visit.queue.pools.get(PoolName(name))
    except UnknownPool as unknown:
        raise not_found(unknown) from unknown
    found = await visit.queue.jobs.queued(pool.name, owner=visit.sees, after=after, most=limit + 1)
    return page_answer(
        Page[wire.QueuedJob],
        lambda each: wire.queued_job_shape(*each),
        found,
        limit,
        "queue",
        key=lambda each: _place_text(each[1]),
    )


async def _seen(visit: Visit, job_id: str) -> JobId:
    """Nobody moves, or moves past, what does not exist for them."""
    return (await visit.queue.jobs.find(JobId(job_id), owner=visit.sees)).id


def _place_text(job: Job) -> str:
    return ",".join(map(str, job.order))


def _place_from(cursor: str | None) -> Place | None:
    position = position_from(cursor, "queue")
    if position is None:
        return None
    *numbers, job_id = position.split(",", 3)
    if len(numbers) != 3 or any(len(each) > _MOST_DIGITS + 1 for each in numbers):
        raise InvalidCursor
    try:
        rank, place, created_at = map(int, numbers)
    except ValueError:
        raise InvalidCursor from None
    if not job_id.isprintable() or any(not -(2**63) <= each < 2**63 for each in (rank, place, created_at)):
        raise InvalidCursor
    return Place(rank, place, created_at, job_id)
