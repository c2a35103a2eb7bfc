"""What models cost, from a table that comes with a package and asks nobody over the network."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache

from duly.domain.amounts import NOTHING, Amount, amount_of_decimal
from duly.domain.billing import DEMO_MODEL, FreeModels, Usage
from duly.domain.instants import Instant, moment_of

CURRENCY = "USD"
_DEMO_PRICE = 10
"""In millionths, for a token."""

Table = Callable[[Usage, Instant], Decimal | None]


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
        price = table(usage, at)
        return None if price is None else amount_of_decimal(price, field="price")


@cache
def _table() -> Table | None:
    """None without the package: then only free models have a price."""
    try:
        import genai_prices  # noqa: PLC0415 - a tenth of a second that only those who run graphs pay
    except ImportError:
        return None

    def look_up(usage: Usage, at: Instant) -> Decimal | None:
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
        return found.total_price

    return look_up
