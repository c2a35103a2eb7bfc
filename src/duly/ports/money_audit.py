"""What an audit of money reads; nothing here writes."""

from typing import Protocol

from duly.domain.billing import MoneyFinding, Recorded
from duly.domain.ids import AccountId, Owner
from duly.domain.instants import Instant, Micros


class MoneyAuditStore(Protocol):
    async def recorded(self, owner: Owner | None, *, after: str, most: int) -> list[Recorded]:
        """Of accounts in order of id; of every owner if none is named."""

    async def discrepancies(self, account_id: AccountId, *, most: int) -> list[MoneyFinding]:
        """Holds, receipts and budgets that contradict each other."""

    async def orphans(
        self, account_id: AccountId, *, era: str, lease_before: Micros, held_before: Instant, most: int
    ) -> list[MoneyFinding]:
        """Open holds that are older than that, and whose lease ran out before then or belongs to another era."""
