"""Accounts as a store keeps them: each change is one statement that leaves the balance whole."""

from typing import Protocol

from duly.domain.amounts import Amount
from duly.domain.billing import Account, Credit, Receipt, VirtualKey
from duly.domain.ids import AccountId, Owner
from duly.domain.instants import Instant


class AccountStore(Protocol):
    async def lock_user(self, user: Owner, *, now: Instant) -> None:
        """Whoever else would open a first account for the user waits until commit."""

    async def add(self, account: Account, key: VirtualKey) -> None:
        """With its default key; adding the same again changes nothing."""

    async def get(self, account_id: AccountId) -> Account | None: ...

    async def default_key(self, account_id: AccountId) -> VirtualKey | None: ...

    async def page(self, owner: Owner | None, *, after: str, most: int) -> list[Account]:
        """In order of id; of every owner if none is named."""

    async def reserve(self, account_id: AccountId, amount: Amount) -> bool:
        """Moves it from available to held, if that much is available; of many callers at once, no more than can."""

    async def move(self, account_id: AccountId, *, granted: int = 0, held: int = 0, used: int = 0) -> Account:
        """Adds to the three sums of the balance; what comes free pays the overrun first."""

    async def add_credit(self, credit: Credit) -> bool:
        """Whether there was none with its key."""

    async def credit(self, account_id: AccountId, key: str) -> Credit | None: ...

    async def unmetered(self, account_id: AccountId) -> int:
        """How many receipts have no amount."""

    async def lines(
        self, account_id: AccountId, *, before: tuple[Instant, str], most: int
    ) -> tuple[list[Credit], list[Receipt]]:
        """Credits and receipts that come before a time and an id, newest first, up to `most` of each."""
