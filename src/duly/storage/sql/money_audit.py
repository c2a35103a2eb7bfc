"""What an audit of money reads, in SQL: sums made anew, and records that contradict each other."""

from duly.domain.amounts import written_amount
from duly.domain.billing import MoneyFinding, MoneyLaw, Recorded
from duly.domain.ids import AccountId, Owner
from duly.domain.instants import Instant, Micros
from duly.storage.executor import Executor
from duly.storage.sql.accounts import account_from_row
from duly.storage.sql.budgets import SqlBudgets, budget_from_row


class SqlMoneyAudit:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def recorded(self, owner: Owner | None, *, after: str, most: int) -> list[Recorded]:
        if owner is None:
            rows = await self._x.fetch("recorded_money", after=after, most=most)
        else:
            rows = await self._x.fetch("recorded_money_of_owner", owner=owner, after=after, most=most)
        return [
            Recorded(account=account_from_row(row), credited=int(row[-3]), held=int(row[-2]), used=int(row[-1]))
            for row in rows
        ]

    async def discrepancies(self, account_id: AccountId, *, most: int) -> list[MoneyFinding]:
        found = [
            *[(MoneyLaw.DOUBLED, text) for text in await self._doubled(account_id, most)],
            *[(MoneyLaw.MISCOUNTED, text) for text in await self._miscounted_holds(account_id, most)],
            *[(MoneyLaw.ORPHANED, text) for text in await self._astray(account_id, most)],
            *[(MoneyLaw.MISCOUNTED, text) for text in await self._miscounted_budgets(account_id)],
        ]
        return [MoneyFinding(law=law, account_id=account_id, text=text) for law, text in found]

    async def orphans(
        self, account_id: AccountId, *, era: str, lease_before: Micros, held_before: Instant, most: int
    ) -> list[MoneyFinding]:
        rows = await self._x.fetch(
            "orphaned_holds",
            account=account_id,
            era=era,
            lease_before=lease_before,
            held_before=held_before,
            most=most,
        )
        return [
            MoneyFinding(
                law=MoneyLaw.ORPHANED,
                account_id=account_id,
                text=f"{written_amount(amount)} is held for attempt {attempt} of run {run_id}, whose lease ran out",
            )
            for run_id, attempt, amount in rows
        ]

    async def _doubled(self, account_id: AccountId, most: int) -> list[str]:
        rows = await self._x.fetch("doubled_receipts", account=account_id, most=most)
        return [f"{reference} has {count} receipts" for reference, count in rows]

    async def _miscounted_holds(self, account_id: AccountId, most: int) -> list[str]:
        rows = await self._x.fetch("miscounted_holds", account=account_id, most=most)
        return [
            f"the hold of attempt {attempt} of run {run_id} says that {written_amount(spent)} was spent and"
            f" {unmetered} not measured; its receipts say {written_amount(int(summed))} and {counted}"
            for run_id, attempt, spent, unmetered, summed, counted in rows
        ]

    async def _astray(self, account_id: AccountId, most: int) -> list[str]:
        rows = await self._x.fetch("receipts_astray", account=account_id, most=most)
        return [f"the receipt {reference} has no hold in its account" for (reference,) in rows]

    async def _miscounted_budgets(self, account_id: AccountId) -> list[str]:
        texts = []
        for row in await self._x.fetch("budgets_of_account", account=account_id):
            budget = budget_from_row(row)
            used = await SqlBudgets(self._x).used_since(budget.scope, budget.scope_id, budget.window_start)
            if used != budget.used:
                counts = f"counts {written_amount(budget.used)}, its holds come to {written_amount(used)}"
                texts.append(f"budget {budget.id} {counts}")
        return texts
