"""Routes of reviews: look, decide."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.domain.reviews import ReviewState
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visiting
from duly.http.parameters import Cursor, Id, Limit
from duly.wire import reviews as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/reviews", tags=["reviews"], route_class=Door)
StateAsked = Annotated[ReviewState | None, Query(description="Only reviews in this state.")]


@router.get("", response_model=Page[wire.Review], summary="List reviews", response_description="A page of reviews.")
async def list_reviews(
    visit: Visiting, *, state: StateAsked = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """Newest first."""
    listing = f"reviews {state or ''}"
    before = position_from(cursor, listing)
    found = await visit.queue.reviews.list(owner=visit.sees, state=state, before=before, most=limit + 1)
    return page_answer(Page[wire.Review], wire.review_shape, found, limit, listing, key=lambda review: review.id)


@router.get("/{id}", response_model=wire.Review, summary="Read a review", response_description="The review.")
async def get_review(visit: Visiting, id: Id) -> Response:
    return json_answer(wire.review_shape(await visit.queue.reviews.get(id, owner=visit.sees)))


@router.post(
    "/{id}/decision",
    response_model=wire.Review,
    summary="Decide a review",
    response_description="The review, decided.",
)
async def decide_review(visit: Visiting, id: Id, body: wire.Decision) -> Response:
    """Its run goes on, or ends, by the first decision; another one is refused (409) and names the first."""
    decision = body.by(visit.caller.owner, key=visit.draw)
    return json_answer(wire.review_shape(await visit.queue.reviews.decide(id, decision, owner=visit.sees)))
