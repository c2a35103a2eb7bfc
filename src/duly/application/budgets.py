"""What may be spent within a window: budgets are set for accounts and schedules, looked at and deleted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from duly.application.accounts import account_id_of, account_in
from duly.domain.amounts import amount_of
from duly.domain.billing import Budget, BudgetScope, OnExceeded, UnknownBudget, Window, chosen
from duly.domain.cadence import zone
from duly.domain.ids import BudgetId, Owner, ScheduleId
from duly.domain.schedules import LONGEST_ID, UnknownSchedule
from duly.domain.texts import text_of
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction


@dataclass(frozen=True, slots=True)
class Budgets:
    """`owner` is the caller, who sees only its own; an operator names none."""

    storage: Storage
    dice: Dice

    async def set(
        self,
        scope: str,
        scope_id: str,
        *,
        owner: str | None,
        window: str,
        limit: int,
        timezone: str = "UTC",
        on_exceeded: str = OnExceeded.SKIP,
    ) -> Budget:
        """One for each window of an account or a schedule; what was held before it was set counts, too."""
        now = self.storage.clock.now()
        asked = Budget(
            id=BudgetId(self.dice.new_id("bud")),
            owner=Owner(""),
            scope=BudgetScope(chosen(BudgetScope, scope, field="scope")),
            scope_id=text_of(scope_id, field="scope_id", longest=LONGEST_ID),
            window=Window(chosen(Window, window, field="window")),
            timezone=zone(timezone).name,
            limit=amount_of(limit, field="limit"),
            on_exceeded=OnExceeded(chosen(OnExceeded, on_exceeded, field="on_exceeded")),
            created_at=now,
        ).at(now)

        async def work(tx: Transaction) -> Budget:
            await tx.budgets.stop_holds()
            whose = await _owner_of(tx, asked, owner)
            used = await tx.budgets.used_since(asked.scope, asked.scope_id, asked.window_start)
            return await tx.budgets.save(replace(asked, owner=whose, used=used))

        return await self.storage.transact(work)

    async def get(self, budget_id: str, *, owner: str | None) -> Budget:
        """As it is now: in a new window nothing is used yet."""
        now = self.storage.clock.now()
        return (await self.storage.read(lambda tx: _budget_in(tx, budget_id, owner))).at(now)

    async def list(self, *, owner: str | None) -> Sequence[Budget]:
        """In order of id."""
        now = self.storage.clock.now()
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        return [budget.at(now) for budget in await self.storage.read(lambda tx: tx.budgets.of(whose))]

    async def delete(self, budget_id: str, *, owner: str | None) -> None:
        is_found = False

        async def work(tx: Transaction) -> None:
            nonlocal is_found
            # An earlier run of this work, whose answer was lost, may have deleted it.
            if is_found and await tx.budgets.get(BudgetId(budget_id)) is None:
                return
            budget = await _budget_in(tx, budget_id, owner)
            is_found = True
            await tx.budgets.delete(budget.id)

        await self.storage.transact(work)


async def _owner_of(tx: Transaction, budget: Budget, owner: str | None) -> Owner:
    if budget.scope is BudgetScope.ACCOUNT:
        return (await account_in(tx, account_id_of(budget.scope_id), owner)).owner
    schedule = await tx.schedules.get(ScheduleId(budget.scope_id))
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(budget.scope_id)
    return schedule.owner


async def _budget_in(tx: Transaction, budget_id: str, owner: str | None) -> Budget:
    """Somebody else's does not exist."""
    budget = await tx.budgets.get(BudgetId(text_of(budget_id, field="budget_id")))
    if budget is None or owner not in (None, budget.owner):
        raise UnknownBudget(budget_id)
    return budget
