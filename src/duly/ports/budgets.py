"""Budgets as a store keeps them: each has a count that moves with every hold it covers."""

from typing import Protocol

from duly.domain.billing import Budget, BudgetScope, Hold
from duly.domain.ids import BudgetId, Owner
from duly.domain.instants import Instant


class BudgetStore(Protocol):
    async def get(self, budget_id: BudgetId) -> Budget | None: ...

    async def of(self, owner: Owner | None) -> list[Budget]:
        """In order of id; of every owner if none is named."""

    async def covering(self, hold: Hold) -> list[Budget]:
        """Those of the hold's account and schedule, kept from changing until commit."""

    async def count(self, budget: Budget) -> None:
        """Saves its window and what is used of it."""

    async def adjust(self, hold: Hold, change: int) -> None:
        """Adds to what is used of the budgets that count this hold in their present window."""

    async def stop_holds(self) -> None:
        """Nobody makes or changes a hold until commit: what is summed up now is all there is."""

    async def used_since(self, scope: BudgetScope, scope_id: str, start: Instant) -> int:
        """What its holds since then reserve, and what those that ended have spent."""

    async def save(self, budget: Budget) -> Budget:
        """In the place of one with the same scope and window, whose id it takes."""

    async def delete(self, budget_id: BudgetId) -> None: ...
