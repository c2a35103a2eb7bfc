"""What runs will cost, in JSON."""

from typing import Annotated

from pydantic import Field

from duly.domain.amounts import Amount, parse_amount, written_amount
from duly.domain.estimates import Estimate
from duly.wire.shapes import Shape

MaxCost = Annotated[
    str | None,
    Field(description="Refused if more than this would be held, such as 5.00, or if nothing says what it may cost."),
]


class HeldCost(Shape):
    account_id: str
    currency: str
    runs: int
    amount: Annotated[str, Field(description="What is held for them in all, before they run.")]
    available: Annotated[str, Field(description="What the account has now.")]
    covered: bool


class PastCost(Shape):
    currency: str
    runs: Annotated[int, Field(description="How many past runs of the same schedules this is the mean of.")]
    mean: str
    unmetered: Annotated[int, Field(description="Runs among them that used something nobody knows the cost of.")]


class Cost(Shape):
    held: Annotated[list[HeldCost], Field(description="By the account that pays.")]
    free: Annotated[int, Field(description="How many cost nothing: they execute no graph, or have their outcome.")]
    unbounded: Annotated[int, Field(description="How many run a graph for which nothing is held: unmetered, not free.")]
    covered: Annotated[bool, Field(description="Whether each account has what would be held.")]
    past: list[PastCost]
    sentences: Annotated[list[str], Field(description="The same, for people.")]


def max_cost_of(text: str | None, *, field: str = "max_cost") -> Amount | None:
    return None if text is None else parse_amount(text, field=field)


def cost_shape(estimate: Estimate) -> Cost:
    return Cost(
        held=[
            HeldCost(
                account_id=purse.account_id,
                currency=purse.currency,
                runs=purse.runs,
                amount=written_amount(purse.held),
                available=written_amount(purse.available),
                covered=purse.covers,
            )
            for purse in estimate.purses
        ],
        free=estimate.free,
        unbounded=estimate.unbounded,
        covered=estimate.is_covered,
        past=[
            PastCost(currency=past.currency, runs=past.runs, mean=written_amount(past.mean), unmetered=past.unmetered)
            for past in estimate.past
        ],
        sentences=list(estimate.in_words()),
    )
