"""What models cost, as the core may know it."""

from typing import Protocol

from duly.domain.amounts import Amount
from duly.domain.billing import Usage
from duly.domain.instants import Instant


class Prices(Protocol):
    def is_free(self, model: str) -> bool:
        """Whether it is known to cost nothing, whatever is used of it."""

    def knows(self, model: str, *, currency: str) -> bool:
        """Whether what it uses can be priced."""

    def price(self, usage: Usage, *, currency: str, at: Instant) -> Amount | None:
        """What that cost then; None if nobody knows: a price is never guessed."""

    def words(self, usage: Usage, *, currency: str, at: Instant) -> str | None:
        """Which price that was, for people; None if nobody knows."""
