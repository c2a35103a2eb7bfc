"""Money as commands print it in JSON: the shapes of the HTTP API, loaded only when some are printed."""

from typing import TYPE_CHECKING

from duly.cli.shapes import Json
from duly.domain.billing import Account, Budget
from duly.domain.grants import Grant

if TYPE_CHECKING:
    from duly.application.accounts import Statement
    from duly.application.grants import BlastRadius


def account_shape(account: Account) -> Json:
    from duly.wire import money

    return money.account_shape(account).model_dump(mode="json")


def statement_shape(statement: "Statement", following: str | None) -> Json:
    from duly.wire import money

    return money.statement_shape(statement, following).model_dump(mode="json")


def grant_shape(grant: Grant) -> Json:
    from duly.wire import money

    return money.grant_shape(grant).model_dump(mode="json")


def grant_detail_shape(radius: "BlastRadius") -> Json:
    from duly.wire import money

    return money.grant_detail_shape(radius).model_dump(mode="json")


def budget_shape(budget: Budget) -> Json:
    from duly.wire import money

    return money.budget_shape(budget).model_dump(mode="json")
