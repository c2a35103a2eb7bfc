"""Amounts are whole millionths: nothing is rounded on the way in or out."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.amounts import MOST, amount_of, amount_of_decimal, parse_amount, written_amount
from duly.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "amount"),
    [("0.50", 500_000), ("0", 0), ("12", 12_000_000), ("0.000001", 1), ("1000000000", 10**15), ("007.1", 7_100_000)],
)
def test_an_amount_is_read_exactly(text: str, amount: int) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "+1",
        "1e3",
        "NaN",
        "inf",
        "0.0000001",
        ".5",
        "1.",
        "1,5",
        " 1",
        "1\n",
        "١",
        "1_000",
        "9" * 5_000,
        "1000000001",
    ],
)
@pytest.mark.req("GRAPH-05", error=True)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="amount"):
        parse_amount(text)


@pytest.mark.parametrize("value", [-1, MOST + 1, 1.5, True, "1", None, float("nan")])
def test_what_is_no_whole_number_of_millionths_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        amount_of(value)


@given(st.integers(0, MOST))
def test_an_amount_that_was_written_is_read_back(amount: int) -> None:
    assert parse_amount(written_amount(amount)) == amount


@given(st.decimals(0, 1_000_000_000, allow_nan=False, allow_infinity=False))
def test_a_price_is_never_billed_as_less_nor_as_a_millionth_more(price: Decimal) -> None:
    assert 0 <= amount_of_decimal(price) - price * 1_000_000 < 1


@pytest.mark.parametrize("price", [Decimal("NaN"), Decimal("Infinity"), Decimal(-1), Decimal("1e400")])
def test_a_price_beyond_all_bounds_is_refused(price: Decimal) -> None:
    with pytest.raises(InvalidInput):
        amount_of_decimal(price)
