"""What an audit of money finds: which law was broken, in which account, and how it can be seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from duly.domain.amounts import written_amount
from duly.domain.billing.accounts import Account, Balance, balance_of
from duly.domain.ids import AccountId


class MoneyLaw(StrEnum):
    """Named by how it is broken."""

    UNBALANCED = "unbalanced"  # an account's figures are not what credits, holds and receipts make of it
    NEGATIVE = "negative"  # less than nothing is available, held or charged
    DOUBLED = "doubled"  # one reference has two receipts
    MISCOUNTED = "miscounted"  # a hold or a budget counts something else than was recorded for it
    ORPHANED = "orphaned"  # a hold, or a receipt, that belongs to nobody any more


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyFinding:
    law: MoneyLaw
    account_id: AccountId
    text: str

    def __str__(self) -> str:
        return f"{self.law}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What is recorded of one account: its own row, and the sums of what was credited, is held, and was used."""

    account: Account
    credited: int
    held: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyVerdict:
    account: Account
    findings: tuple[MoneyFinding, ...]


def findings_of(recorded: Recorded) -> Iterator[MoneyFinding]:
    account = recorded.account
    expected = balance_of(granted=recorded.credited, held=recorded.held, used=recorded.used)
    for name in Balance.__slots__:
        found, right = getattr(account.balance, name), getattr(expected, name)
        if found != right:
            text = f"{name} is {written_amount(found)}, and the records say {written_amount(right)}"
            yield MoneyFinding(law=MoneyLaw.UNBALANCED, account_id=account.id, text=text)
        if found < 0:
            text = f"{name} is {written_amount(found)}"
            yield MoneyFinding(law=MoneyLaw.NEGATIVE, account_id=account.id, text=text)
