"""Holds and their receipts as a store keeps them.

Whoever changes several rows of money changes them in this order, so that no two wait for each other: the hold, its
account, the budgets.
"""

from typing import Protocol

from duly.domain.billing import Hold, HoldState, Receipt
from duly.domain.ids import AccountId, Owner
from duly.domain.instants import Instant, Micros


class HoldStore(Protocol):
    async def add(self, hold: Hold) -> tuple[Hold, Owner | None] | None:
        """The hold with its account's default key, and whose its schedule is, which may be a tombstone.

        None if its run and attempt have one, or there is no account.
        """

    async def get(self, run_id: str, attempt: int) -> Hold | None: ...

    async def lock(self, run_id: str, attempt: int) -> Hold | None:
        """The hold, kept from changing until commit."""

    async def renew(self, hold: Hold, *, era: str, expires_at: Micros) -> None: ...

    async def count_at(self, hold: Hold, counted_at: Instant) -> None:
        """Lets budgets count it in a later window."""

    async def end(self, run_id: str, attempt: int, state: HoldState, *, now: Instant) -> Hold | None:
        """As it is then; None if it had ended, or there is none. What was spent is settled, and cannot be released."""

    async def add_receipt(self, receipt: Receipt) -> bool:
        """Whether there was none with its reference."""

    async def receipt(self, reference: str) -> Receipt | None: ...

    async def spend(self, hold: Hold, receipt: Receipt) -> None:
        """Adds the receipt to what its hold has spent, or to what it could not measure."""

    async def run_out(self, *, era: str, lease_now: Micros, most: int) -> list[Hold]:
        """Open ones whose lease has run out."""

    async def open_of(self, account_id: AccountId, *, most: int) -> list[Hold]:
        """Newest first."""

    async def of_run(self, run_id: str) -> list[Hold]:
        """Of all its attempts, first to last."""

    async def receipts_of_run(self, run_id: str, *, most: int) -> list[Receipt]:
        """Of all its attempts, first to last."""

    async def count_receipts(self, run_id: str) -> int: ...
