"""Accounts, grants and budgets, in JSON. Amounts are texts such as "12.50", so that nobody rounds them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from duly.application.accounts import Line, Statement
from duly.application.grants import BlastRadius
from duly.domain.amounts import written_amount
from duly.domain.billing import Account as DomainAccount
from duly.domain.billing import Budget as DomainBudget
from duly.domain.billing import BudgetScope, Credit, OnExceeded, Window
from duly.domain.grants import Grant as DomainGrant
from duly.domain.instants import moment_of
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape

AmountText = Annotated[str, Field(description="In the account's currency, with up to six decimals.", examples=["5.00"])]


class NewAccount(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "research"}]})

    name: str
    owner: Annotated[str | None, Field(description="Whose it is: the caller's, unless an admin says otherwise.")] = None
    currency: str = "USD"


class Account(Shape):
    id: str
    owner: str
    name: str
    currency: str
    granted: AmountText
    available: AmountText
    held: AmountText
    charged: AmountText
    overrun: AmountText
    created_at: Moment


class NewCredit(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"amount": "5.00", "key": "invoice-17"}]})

    amount: AmountText
    key: Annotated[str, Field(description="The same key again adds nothing.")]


class StatementLine(Shape):
    id: str
    kind: Literal["credit", "receipt"]
    at: Moment
    amount: Annotated[str | None, Field(description="null: something was used, and nobody knows what it costs.")]
    reference: Annotated[str, Field(description="A credit's key; a receipt's run, attempt and unit.")]
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    price: Annotated[str | None, Field(description="The price that was used, in words, as it was then.")]


class AccountStatement(Shape):
    account: Account
    unmetered: Annotated[int, Field(description="How many receipts have no amount.")]
    items: list[StatementLine]
    next_cursor: str | None


class NewGrant(Shape):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"account_id": "acct_01", "scopes": ["graph:execute:langgraph:news"]}]}
    )

    account_id: str
    scopes: Annotated[list[str], Field(description="`graph:execute:{graph}`, or `graph:execute:*`.")]
    expires_at: Moment | None = None
    user_id: Annotated[str | None, Field(description="Whom it is for: the account's owner, unless an admin says.")] = (
        None
    )


class Grant(Shape):
    id: str
    user_id: str
    account_id: str
    scopes: list[str]
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None


class GrantDetail(Grant):
    stops: Annotated[list[str], Field(description="Active schedules that would stop if it were revoked.")]


class NewBudget(Shape):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"scope": "schedule", "scope_id": "morning-digest", "window": "day", "limit": "1.00"}]
        }
    )

    scope: Annotated[BudgetScope, Field(strict=False)]
    scope_id: str
    window: Annotated[Window, Field(strict=False)]
    limit: AmountText
    timezone: str = "UTC"
    on_exceeded: Annotated[OnExceeded, Field(strict=False)] = OnExceeded.SKIP


class Budget(Shape):
    id: str
    owner: str
    scope: BudgetScope
    scope_id: str
    window: Window
    timezone: str
    limit: AmountText
    used: AmountText
    on_exceeded: OnExceeded
    window_start: Annotated[Moment | None, Field(description="null: it has no beginning.")]
    created_at: Moment


def account_shape(account: DomainAccount) -> Account:
    balance = account.balance
    return Account(
        id=account.id,
        owner=account.owner,
        name=account.name,
        currency=account.currency,
        granted=written_amount(balance.granted),
        available=written_amount(balance.available),
        held=written_amount(balance.held),
        charged=written_amount(balance.charged),
        overrun=written_amount(balance.overrun),
        created_at=moment_of(account.created_at),
    )


def statement_shape(statement: Statement, next_cursor: str | None) -> AccountStatement:
    return AccountStatement(
        account=account_shape(statement.account),
        unmetered=statement.unmetered,
        items=[_line(line) for line in statement.lines],
        next_cursor=next_cursor,
    )


def _line(line: Line) -> StatementLine:
    if isinstance(line, Credit):
        reference, usage = line.key, None
    else:
        reference, usage = line.source_reference, line.usage
    return StatementLine(
        id=line.id,
        kind="credit" if isinstance(line, Credit) else "receipt",
        at=moment_of(line.created_at),
        amount=None if line.amount is None else written_amount(line.amount),
        reference=reference,
        model=None if usage is None else usage.model,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        price=None if isinstance(line, Credit) else line.price,
    )


def grant_shape(grant: DomainGrant) -> Grant:
    return Grant(
        id=grant.id,
        user_id=grant.user_id,
        account_id=grant.account_id,
        scopes=list(grant.scopes),
        created_at=moment_of(grant.created_at),
        expires_at=moment_or_none(grant.expires_at),
        revoked_at=moment_or_none(grant.revoked_at),
        last_used_at=moment_or_none(grant.last_used_at),
    )


def grant_detail_shape(radius: BlastRadius) -> GrantDetail:
    return GrantDetail(**dict(grant_shape(radius.grant)), stops=_names(radius.schedules))


def _names(schedules: Sequence[str]) -> list[str]:
    return [str(schedule) for schedule in schedules]


def budget_shape(budget: DomainBudget) -> Budget:
    return Budget(
        id=budget.id,
        owner=budget.owner,
        scope=budget.scope,
        scope_id=budget.scope_id,
        window=budget.window,
        timezone=budget.timezone,
        limit=written_amount(budget.limit),
        used=written_amount(budget.used),
        on_exceeded=budget.on_exceeded,
        window_start=None if budget.window is Window.TOTAL else moment_of(budget.window_start),
        created_at=moment_of(budget.created_at),
    )
