"""An account to spend from, and short words for what happens to its money."""

from typing import Self

from duly.bootstrap import Queue
from duly.domain.billing import Account, Balance, Hold, Receipt
from tests.contracts.world import World


class Purse:
    """Amounts are single millionths, so that tests are sums of small numbers."""

    def __init__(self, queue: Queue, account: Account) -> None:
        self.queue = queue
        self.account = account

    @classmethod
    async def with_(cls, world: World, amount: int = 0, *, owner: str = "ann", currency: str = "USD") -> Self:
        purse = cls(world.queue, await world.queue.accounts.create(owner=owner, name="main", currency=currency))
        if amount:
            await purse.credit(amount, key="first")
        return purse

    async def credit(self, amount: int, *, key: str) -> Account:
        return await self.queue.accounts.credit(self.account.id, amount=amount, key=key)

    async def hold(
        self,
        amount: int,
        run: str = "run",
        attempt: int = 1,
        *,
        schedule: str | None = None,
        queue: Queue | None = None,
    ) -> Hold:
        return await (queue or self.queue).money.hold(
            run, attempt, account_id=self.account.id, amount=amount, schedule_id=schedule
        )

    async def spend(self, amount: int | None, unit: str = "call", run: str = "run", attempt: int = 1) -> Receipt:
        return await self.queue.money.receipt(run, attempt, unit, amount=amount)

    async def settle(self, run: str = "run", attempt: int = 1) -> Hold:
        return await self.queue.money.settle(run, attempt)

    async def release(self, run: str = "run", attempt: int = 1) -> Hold:
        return await self.queue.money.release(run, attempt)

    async def balance(self) -> Balance:
        return (await self.queue.accounts.get(self.account.id, owner=None)).balance

    async def shown(self) -> str:
        """`available+held+charged`, and what was overrun behind an exclamation mark."""
        balance = await self.balance()
        return f"{balance.available}+{balance.held}+{balance.charged}" + (
            f"!{balance.overrun}" if balance.overrun else ""
        )
