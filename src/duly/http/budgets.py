"""Routes of budgets: set, look, delete."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.amounts import parse_amount
from duly.domain.billing import UnknownAccount
from duly.domain.schedules import UnknownSchedule
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visiting
from duly.http.parameters import Cursor, Id, Limit
from duly.http.problems import Refusal
from duly.wire import money as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/budgets", tags=["budgets"], route_class=Door)


@router.post(
    "",
    response_model=wire.Budget,
    summary="Set a budget",
    response_description="The budget, with what is used of it.",
)
async def set_budget(visit: Visiting, body: wire.NewBudget) -> Response:
    """One for each window of an account or a schedule: setting it again changes it. What was held before counts."""
    try:
        budget = await visit.queue.budgets.set(
            body.scope,
            body.scope_id,
            owner=visit.sees,
            window=body.window,
            limit=parse_amount(body.limit, field="limit"),
            timezone=body.timezone,
            on_exceeded=body.on_exceeded,
        )
    except (UnknownAccount, UnknownSchedule) as unknown:
        raise Refusal(422, str(unknown), code=unknown.code, errors=(("/scope_id", str(unknown)),)) from unknown
    return json_answer(wire.budget_shape(budget))


@router.get("", response_model=Page[wire.Budget], summary="List budgets", response_description="A page of budgets.")
async def list_budgets(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of id."""
    seen = position_from(cursor, "budgets") or ""
    unseen = [budget for budget in await visit.queue.budgets.list(owner=visit.sees) if budget.id > seen]
    return page_answer(Page[wire.Budget], wire.budget_shape, unseen, limit, "budgets", key=lambda budget: budget.id)


@router.get("/{id}", response_model=wire.Budget, summary="Read a budget", response_description="The budget.")
async def get_budget(visit: Visiting, id: Id) -> Response:
    """As it is now: in a new window nothing is used yet."""
    return json_answer(wire.budget_shape(await visit.queue.budgets.get(id, owner=visit.sees)))


@router.delete(
    "/{id}",
    status_code=204,
    response_class=Response,
    summary="Delete a budget",
    response_description="It is deleted.",
)
async def delete_budget(visit: Visiting, id: Id) -> Response:
    await visit.queue.budgets.delete(id, owner=visit.sees)
    return Response(status_code=204)
