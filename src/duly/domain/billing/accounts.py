"""Accounts: who pays. What is available, held and charged follows from three sums, in whatever order they came."""

import re
from dataclasses import dataclass

from duly.domain.amounts import Amount, written_amount
from duly.domain.errors import Conflict, InvalidInput, NotFound, Refused
from duly.domain.ids import AccountId, Owner, VirtualKeyId
from duly.domain.instants import Instant

MOST_GRANTED = Amount(10**18)
LONGEST_NAME = 120

_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """`granted = available + held + charged`; use beyond that is `overrun`, and then nothing is available."""

    granted: int
    available: int
    held: int
    charged: int
    overrun: int


def balance_of(*, granted: int, held: int, used: int) -> Balance:
    """From what was credited, what open holds reserve, and what ended ones have used."""
    left = granted - held - used
    available, overrun = max(left, 0), max(-left, 0)
    return Balance(granted=granted, available=available, held=held, charged=used - overrun, overrun=overrun)


EMPTY = balance_of(granted=0, held=0, used=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: AccountId
    owner: Owner
    name: str
    currency: str
    created_at: Instant
    balance: Balance = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualKey:
    """By what an account is known where its graphs run; each account has one default key."""

    id: VirtualKeyId
    account_id: AccountId
    is_default: bool
    created_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """Money that came in, once for each key."""

    id: str
    account_id: AccountId
    key: str
    amount: Amount
    created_at: Instant


def currency_of(value: object) -> str:
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        raise InvalidInput("currency", f"{ascii(value)[:20]} is no currency", fix="use three capitals, such as USD")
    return value


class UnknownAccount(NotFound):
    code = "unknown_account"

    def __init__(self, account_id: str) -> None:
        super().__init__(f"there is no account {account_id!r}")
        self.account_id = account_id


class InsufficientCredit(Refused):
    """The account has less available than is needed."""

    code = "insufficient_credit"

    def __init__(self, account_id: str, *, needed: int, available: int) -> None:
        super().__init__(
            f"account {account_id} has {written_amount(available)} available,"
            f" and {'more' if needed <= available else written_amount(needed)} is needed"
        )
        self.account_id = account_id
        self.needed = needed
        self.available = available


class PaymentRequired(InsufficientCredit):
    """A schedule of a paid model was to be saved, and its account has nothing to pay with."""

    code = "payment_required"

    def __init__(self, account_id: str, *, model: str, available: int) -> None:
        super().__init__(account_id, needed=1, available=available)
        have = f"model {model!r} is paid for, and account {account_id} has {written_amount(available)} available"
        self.args = (f"{have}; add credit first: duly account credit {account_id} 5.00 --key NAME",)
        self.model = model


class UnknownPrice(Refused):
    """The model is not free, and its price is not known: nobody guesses with somebody else's money."""

    code = "unknown_price"

    def __init__(self, model: str, currency: str) -> None:
        unknown = f"model {model!r} has no known price in {currency}, and is not among the free ones"
        super().__init__(f"{unknown}; name it in DULY_FREE_MODELS if it costs nothing, or pip install 'duly[prices]'")
        self.model = model
        self.currency = currency


class CreditKeyReused(Conflict):
    """The key already stands for a credit of another amount."""

    code = "credit_key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(f"the credit {key!r} was given already, with another amount")
        self.key = key


class MaySpendNothing(Refused):
    """Its `max_cost` is 0, and the model is not known to be free."""

    code = "may_spend_nothing"

    def __init__(self, model: str | None) -> None:
        named = "a model that it does not name" if model is None else f"model {model!r}"
        fix = "raise max_cost, use a free model, or name it in DULY_FREE_MODELS if it costs nothing"
        super().__init__(f"max_cost is 0, and {named} is not among the free ones; {fix}")
        self.model = model
