"""Receipts: what one unit of a run has used and cost, once for each `run/attempt/unit`."""

from dataclasses import dataclass

from duly.domain.amounts import Amount
from duly.domain.errors import Conflict, InvalidInput
from duly.domain.ids import AccountId, VirtualKeyId
from duly.domain.instants import Instant
from duly.domain.texts import text_of, whole_number_of

MOST_TOKENS = 10**9
LONGEST_MODEL = 200
LONGEST_UNIT = 120
MOST_ATTEMPTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call; those of the cache are among the input's."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __post_init__(self) -> None:
        text_of(self.model, field="model", longest=LONGEST_MODEL)
        for field in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            whole_number_of(getattr(self, field), field=field, least=0, most=MOST_TOKENS)
        if self.cache_read_tokens + self.cache_write_tokens > self.input_tokens:
            raise InvalidInput("input_tokens", "are fewer than those of the cache", fix="count cached tokens in them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Without an amount it is unmetered: something was used, and what it costs is not known.

    `price` says in words what was paid for a million tokens, if Duly worked the amount out.
    """

    id: str
    account_id: AccountId
    virtual_key_id: VirtualKeyId
    run_id: str
    attempt: int
    unit: str
    usage: Usage | None
    amount: Amount | None
    created_at: Instant
    price: str | None = None

    @property
    def source_reference(self) -> str:
        return reference_of(self.run_id, self.attempt, self.unit)


def reference_of(run_id: str, attempt: int, unit: str) -> str:
    """A unit has no slash and an attempt is a number, so that no two of them are written alike."""
    return f"{run_id}/{attempt}/{unit}"


def run_id_of(value: object) -> str:
    return text_of(value, field="run_id")


def attempt_of(value: object) -> int:
    return whole_number_of(value, field="attempt", least=1, most=MOST_ATTEMPTS)


def unit_of(value: object) -> str:
    unit = text_of(value, field="unit", longest=LONGEST_UNIT)
    if "/" in unit:
        raise InvalidInput("unit", "holds a slash", position=unit.index("/"))
    return unit


class ReceiptDiffers(Conflict):
    """The reference has a receipt with other figures: what is written stays."""

    code = "receipt_differs"

    def __init__(self, reference: str) -> None:
        super().__init__(f"the receipt {reference!r} exists already, with other figures")
        self.reference = reference
