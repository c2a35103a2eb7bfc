"""Routes of accounts: open, look, read the statement, add credit."""

from fastapi import APIRouter
from starlette.responses import Response

from duly.domain.amounts import parse_amount
from duly.domain.errors import InvalidInput
from duly.domain.instants import Instant
from duly.domain.tokens import Role
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import InvalidCursor, cursor_of, position_from
from duly.http.door import Door, Visit, Visiting, for_role
from duly.http.parameters import Cursor, Id, Limit
from duly.wire import money as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/accounts", tags=["accounts"], route_class=Door)
_MOST_DIGITS = 18


@router.post(
    "",
    status_code=201,
    response_model=wire.Account,
    summary="Open an account",
    response_description="The account, with nothing in it.",
)
async def create_account(visit: Visiting, body: wire.NewAccount) -> Response:
    """With the default key under which its graphs run."""
    account_id = None if visit.draw is None else f"acct_{visit.draw}"
    account = await visit.queue.accounts.create(
        owner=_owner_of(visit, body.owner), name=body.name, currency=body.currency, account_id=account_id
    )
    return json_answer(wire.account_shape(account), 201)


@router.get("", response_model=Page[wire.Account], summary="List accounts", response_description="A page of accounts.")
async def list_accounts(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of id."""
    after = position_from(cursor, "accounts")
    found = await visit.queue.accounts.list(owner=visit.sees, after=after, most=limit + 1)
    return page_answer(Page[wire.Account], wire.account_shape, found, limit, "accounts", key=lambda account: account.id)


@router.get("/{id}", response_model=wire.Account, summary="Read an account", response_description="The account.")
async def get_account(visit: Visiting, id: Id) -> Response:
    """`granted = available + held + charged`, always; what was spent beyond that is the overrun."""
    return json_answer(wire.account_shape(await visit.queue.accounts.get(id, owner=visit.sees)))


@router.get(
    "/{id}/statement",
    response_model=wire.AccountStatement,
    summary="Read an account's statement",
    response_description="A page of credits and receipts.",
)
async def get_statement(visit: Visiting, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """What came in and what was spent, newest first."""
    statement = await visit.queue.accounts.statement(id, owner=visit.sees, before=_before(cursor), most=limit)
    following = None
    if statement.before is not None:
        at, line_id = statement.before
        following = cursor_of("statement", f"{at} {line_id}")
    return json_answer(wire.statement_shape(statement, following))


@router.post(
    "/{id}/credits",
    status_code=201,
    response_model=wire.Account,
    openapi_extra=for_role(Role.ADMIN),
    summary="Add credit to an account",
    response_description="The account as it is now.",
)
async def credit_account(visit: Visiting, id: Id, body: wire.NewCredit) -> Response:
    """Pays the overrun first. The same key again adds nothing; with another amount it is refused."""
    amount = parse_amount(body.amount)
    return json_answer(wire.account_shape(await visit.queue.accounts.credit(id, amount=amount, key=body.key)), 201)


def _owner_of(visit: Visit, named: str | None) -> str:
    if named is not None and visit.sees not in (None, named):
        raise InvalidInput("owner", "is somebody else", fix="leave it out")
    return visit.caller.owner if named is None else named


def _before(cursor: str | None) -> tuple[Instant, str] | None:
    position = position_from(cursor, "statement")
    if position is None:
        return None
    at, _, line_id = position.partition(" ")
    if not (at.isascii() and at.isdigit() and len(at) <= _MOST_DIGITS and line_id):
        raise InvalidCursor
    return Instant(int(at)), line_id
