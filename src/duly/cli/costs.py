"""What a mass action may cost, as it is given and as it is told before it is carried out."""

from collections.abc import Callable

from duly.domain.amounts import Amount, parse_amount
from duly.domain.estimates import Estimate


def cost_from(text: str | None) -> Amount | None:
    return None if text is None else parse_amount(text, field="--max-cost")


def told_cost(estimate: Estimate | None, tell: Callable[[str], None]) -> None:
    for sentence in () if estimate is None else estimate.in_words():
        tell(sentence)
