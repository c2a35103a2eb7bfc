"""Budgets in SQL."""

from duly.domain.billing import Budget, BudgetScope, Hold, OnExceeded, Window
from duly.domain.ids import BudgetId, Owner
from duly.domain.instants import Instant
from duly.storage.executor import Executor, Row


class SqlBudgets:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def get(self, budget_id: BudgetId) -> Budget | None:
        for row in await self._x.fetch("budget_by_id", id=budget_id):
            return budget_from_row(row)
        return None

    async def of(self, owner: Owner | None) -> list[Budget]:
        if owner is None:
            rows = await self._x.fetch("all_budgets")
        else:
            rows = await self._x.fetch("budgets_of_owner", owner=owner)
        return [budget_from_row(row) for row in rows]

    async def covering(self, hold: Hold) -> list[Budget]:
        rows = await self._x.fetch("budgets_covering", account=hold.account_id, schedule=hold.schedule_id)
        return [budget_from_row(row) for row in rows]

    async def count(self, budget: Budget) -> None:
        await self._x.fetch("count_budget", id=budget.id, window_start=budget.window_start, used=budget.used)

    async def adjust(self, hold: Hold, change: int) -> None:
        """Read first, because rows must be locked in one order, and an update takes them as they come."""
        for budget in await self.covering(hold):
            if budget.window_start <= hold.counted_at:
                used = budget.used + change
                await self._x.fetch("count_budget", id=budget.id, window_start=budget.window_start, used=used)

    async def stop_holds(self) -> None:
        await self._x.fetch("stop_holds")

    async def used_since(self, scope: BudgetScope, scope_id: str, start: Instant) -> int:
        rows = await self._x.fetch(f"used_of_{scope}_since", scope_id=scope_id, start=start)
        return int(rows[0][0] or 0)

    async def save(self, budget: Budget) -> Budget:
        rows = await self._x.fetch(
            "save_budget",
            id=budget.id,
            owner=budget.owner,
            scope=budget.scope.value,
            scope_id=budget.scope_id,
            period=budget.window.value,
            timezone=budget.timezone,
            limit_amount=budget.limit,
            on_exceeded=budget.on_exceeded.value,
            window_start=budget.window_start,
            used=budget.used,
            created_at=budget.created_at,
        )
        return budget_from_row(rows[0])

    async def delete(self, budget_id: BudgetId) -> None:
        await self._x.fetch("delete_budget", id=budget_id)


def budget_from_row(row: Row) -> Budget:
    return Budget(
        id=row[0],
        owner=row[1],
        scope=BudgetScope(row[2]),
        scope_id=row[3],
        window=Window(row[4]),
        timezone=row[5],
        limit=row[6],
        on_exceeded=OnExceeded(row[7]),
        window_start=row[8],
        used=row[9],
        created_at=row[10],
    )
