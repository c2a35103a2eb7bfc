"""Prices come from a table that is installed, never from a guess."""

import sys

import pytest

from duly.domain.billing import DEMO_MODEL, FreeModels, Usage
from duly.domain.instants import Instant
from duly.system import prices
from duly.system.prices import TablePrices

NOW = Instant(1_800_000_000_000_000)
CALL = Usage(model="gpt-4o", input_tokens=1_000_000, output_tokens=1_000_000)


@pytest.mark.req("GRAPH-06")
def test_a_known_model_costs_what_the_table_says_rounded_up_to_a_millionth() -> None:
    table = TablePrices()

    million = table.price(CALL, currency="USD", at=NOW)
    token = table.price(Usage(model="gpt-4o", input_tokens=1), currency="USD", at=NOW)

    assert million is not None
    assert million > 1_000_000
    assert token is not None
    assert token == -(-2_500_000 // 1_000_000)
    assert table.price(Usage(model="openai:gpt-4o", input_tokens=1), currency="USD", at=NOW) == token
    assert table.knows("gpt-4o", currency="USD")


@pytest.mark.req("GRAPH-06", error=True)
@pytest.mark.parametrize(
    "model", ["nobody-sells-this", "nobody:gpt-4o", "openai:nobody-sells-this", ":", "openai:", "*"]
)
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert TablePrices().price(Usage(model=model, input_tokens=1), currency="USD", at=NOW) is None
    assert not TablePrices().knows(model, currency="USD")


@pytest.mark.req("GRAPH-06", error=True)
def test_the_table_knows_one_currency() -> None:
    assert TablePrices().price(CALL, currency="EUR", at=NOW) is None
    assert not TablePrices().knows("gpt-4o", currency="EUR")


@pytest.mark.req("GRAPH-06")
def test_a_free_model_costs_nothing_in_any_currency_whatever_the_table_says() -> None:
    table = TablePrices(FreeModels(names=frozenset({"gpt-4o"})))

    assert table.is_free("gpt-4o")
    assert table.price(CALL, currency="EUR", at=NOW) == 0
    assert not TablePrices().is_free("gpt-4o")


def test_without_the_package_nothing_has_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices._table.cache_clear()
    try:
        assert TablePrices().price(CALL, currency="USD", at=NOW) is None
    finally:
        prices._table.cache_clear()


def test_the_price_that_was_used_is_said_in_words() -> None:
    table = TablePrices(FreeModels(beginnings=("ollama:",)))
    used = Usage(model="gpt-4o", input_tokens=1_000, output_tokens=100)

    assert table.words(used, currency="USD", at=NOW) == "2.50 in, 10.00 out per million tokens of openai:gpt-4o"
    assert table.words(Usage(model="gpt-4o", output_tokens=7), currency="USD", at=NOW) == (
        "10.00 out per million tokens of openai:gpt-4o"
    )
    assert table.words(Usage(model="ollama:llama3"), currency="EUR", at=NOW) == "free"
    assert table.words(used, currency="EUR", at=NOW) is None
    assert table.words(Usage(model="nobody:sells-this", input_tokens=1), currency="USD", at=NOW) is None
    assert table.words(Usage(model="gpt-4o"), currency="USD", at=NOW) is None


def test_the_demos_model_costs_the_same_with_every_table() -> None:
    usage = Usage(model=DEMO_MODEL, input_tokens=2, output_tokens=5)

    assert TablePrices().price(usage, currency="EUR", at=Instant(0)) == 70
    assert TablePrices().words(usage, currency="EUR", at=Instant(0)) == f"10.00 per million tokens of {DEMO_MODEL}"
