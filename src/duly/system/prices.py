"""What models cost, from a table that comes with a package and asks nobody over the network."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from duly.domain.amounts import NOTHING, Amount, amount_of_decimal, written_amount
from duly.domain.billing import DEMO_MODEL, FreeModels, Usage
from duly.domain.instants import Instant, moment_of

CURRENCY = "USD"
_DEMO_PRICE = 10
"""In millionths, for a token."""

_MILLION = 1_000_000


class Found(NamedTuple):
    """What a table says of a use: its parts, and whose price it is."""

    input: Decimal
    output: Decimal
    total: Decimal
    model: str


Table = Callable[[Usage, Instant], Found | None]


@dataclass(frozen=True, slots=True)
class TablePrices:
    """Models are named `gpt-4o` or, where several providers sell one, `openai:gpt-4o`."""

    free: FreeModels = field(default_factory=FreeModels)

    def is_free(self, model: str) -> bool:
        return model in self.free

    def knows(self, model: str, *, currency: str) -> bool:
        return self.price(Usage(model=model), currency=currency, at=Instant(0)) is not None

    def price(self, usage: Usage, *, currency: str, at: Instant) -> Amount | None:
        if self.is_free(usage.model):
            return NOTHING
        if usage.model == DEMO_MODEL:
            return Amount((usage.input_tokens + usage.output_tokens) * _DEMO_PRICE)
        if currency != CURRENCY or (table := _table()) is None:
            return None
        found = table(usage, at)
        return None if found is None else amount_of_decimal(found.total, field="price")

    def words(self, usage: Usage, *, currency: str, at: Instant) -> str | None:
        if self.is_free(usage.model):
            return "free"
        if usage.model == DEMO_MODEL:
            return f"{written_amount(Amount(_DEMO_PRICE * _MILLION))} per million tokens of {DEMO_MODEL}"
        table = _table() if currency == CURRENCY else None
        found = None if table is None else table(usage, at)
        if found is None:
            return None
        rates = [
            f"{_rate(cost, tokens)} {way}"
            for cost, tokens, way in (
                (found.input, usage.input_tokens, "in"),
                (found.output, usage.output_tokens, "out"),
            )
            if tokens
        ]
        return f"{', '.join(rates)} per million tokens of {found.model}" if rates else None


def _rate(cost: Decimal, tokens: int) -> str:
    return written_amount(amount_of_decimal(cost * _MILLION / tokens, field="price"))


@cache
def _table() -> Table | None:
    """None without the package: then only free models have a price."""
    try:
        import genai_prices  # noqa: PLC0415 - a tenth of a second that only those who run graphs pay
    except ImportError:
        return None

    def look_up(usage: Usage, at: Instant) -> Found | None:
        provider, _, name = usage.model.rpartition(":")
        counted = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            found = genai_prices.calc_price(
                counted, name, provider_id=provider or None, genai_request_timestamp=moment_of(at)
            )
        except LookupError:
            return None
        return Found(found.input_price, found.output_price, found.total_price, f"{found.provider.id}:{found.model.id}")

    return look_up
