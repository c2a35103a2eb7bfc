"""Amounts of money: whole millionths of a currency, so that no sum is ever rounded."""

import re
from decimal import ROUND_CEILING, Decimal
from typing import NewType

from duly.domain.errors import InvalidInput
from duly.domain.texts import whole_number_of

Amount = NewType("Amount", int)

UNIT = 1_000_000
NOTHING = Amount(0)
MOST = Amount(10**15)
"""The largest amount that can be named at once: a billion of any currency."""

_DECIMALS = 6
_WRITTEN = re.compile(r"(\d{1,10})(?:\.(\d{1,6}))?", re.ASCII)


def amount_of(value: object, *, field: str = "amount", least: int = 0) -> Amount:
    """A whole number of millionths."""
    return Amount(whole_number_of(value, field=field, least=least, most=MOST))


def parse_amount(text: object, *, field: str = "amount") -> Amount:
    """`"0.50"` is 500 000 millionths; signs, exponents, other digits and a seventh decimal are refused."""
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(field, f"{_shown(text)} is not an amount", fix="write it as 12.50, with up to six decimals")
    whole, fraction = found[1], found[2] or ""
    return amount_of(int(whole) * UNIT + int(fraction.ljust(_DECIMALS, "0")), field=field)


def amount_of_decimal(value: Decimal, *, field: str = "amount") -> Amount:
    """The smallest amount that covers it: what was spent is never billed as less."""
    if not value.is_finite() or not 0 <= value * UNIT <= MOST:
        raise InvalidInput(field, f"{_shown(value)} is not an amount", fix=f"use 0 to {MOST // UNIT}")
    return Amount(int((value * UNIT).to_integral_value(rounding=ROUND_CEILING)))


def written_amount(amount: int) -> str:
    """For people to read, and to give back: at least two decimals, as many as it takes."""
    whole, millionths = divmod(abs(amount), UNIT)
    fraction = f"{millionths:06}".rstrip("0").ljust(2, "0")
    return f"{'-' if amount < 0 else ''}{whole}.{fraction}"


def _shown(value: object) -> str:
    return ascii(value)[:40] if isinstance(value, (str, int, float, Decimal)) else f"a {type(value).__name__}"
