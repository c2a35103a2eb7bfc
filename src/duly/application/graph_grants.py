"""What a graph's schedule needs before it is saved: a grant for that graph, on an account that could pay."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from duly.application.accounts import CURRENCY, account_in
from duly.domain.billing import Account, PaymentRequired, UnknownPrice, VirtualKey
from duly.domain.errors import InvalidInput
from duly.domain.grants import Grant, scopes_of
from duly.domain.graph_targets import GraphTarget, grant_of, granted, graph_target_of
from duly.domain.ids import AccountId, GrantId, Owner, ScheduleId, VirtualKeyId
from duly.domain.instants import Instant
from duly.domain.schedules import Schedule, Target
from duly.ports.dice import Dice
from duly.ports.prices import Prices
from duly.ports.storage import Storage, Transaction

FIRST_ACCOUNT = "main"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GraphGrants:
    dice: Dice
    prices: Prices

    def granting(self, target: Target | None, now: Instant) -> "Granting":
        """For one change of a schedule; drawn before its transaction, which may be run again."""
        asked = None if target is None else graph_target_of(target)
        drawn = None if asked is None else GrantId(self.dice.new_id("grant"))
        return Granting(target, asked, drawn, now)

    async def transact(self, storage: Storage, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Opens the first account of whoever has none, by itself: a refusal names an account that is there."""
        try:
            return await storage.transact(work)
        except NoAccountError as none:
            await self.open_first(storage, none.owner)
            return await storage.transact(work)

    async def open_first(self, storage: Storage, owner: Owner) -> Account:
        """The user's first account; however many ask at once, there is one."""
        now = storage.clock.now()
        account = Account(
            id=AccountId(self.dice.new_id("acct")), owner=owner, name=FIRST_ACCOUNT, currency=CURRENCY, created_at=now
        )
        key_id = VirtualKeyId(self.dice.new_id("vkey"))
        key = VirtualKey(id=key_id, account_id=account.id, is_default=True, created_at=now)

        async def work(tx: Transaction) -> Account:
            await tx.accounts.lock_user(owner, now=now)
            found = await tx.accounts.page(owner, after="", most=1)
            if found:
                return found[0]
            await tx.accounts.add(account, key)
            return account

        return await storage.transact(work)

    async def require_payable_in(self, tx: Transaction, target: Target) -> None:
        """Refuses a paid model on an account with nothing left, or one without a price; free ones, and none, pass."""
        asked = graph_target_of(target)
        if asked is None or asked.model is None or asked.grant_id is None:
            return
        if asked.max_cost == 0 and not self.prices.is_free(asked.model):
            why = f"is 0, and model {asked.model!r} is not among the free ones"
            raise InvalidInput("params.max_cost", why, fix="raise it, leave it out, or name a free model")
        grant = await tx.grants.get(GrantId(asked.grant_id))
        if grant is None:
            return
        self.require_payable(asked.model, await account_in(tx, grant.account_id, None))

    def require_payable(self, model: str, account: Account) -> None:
        if self.prices.is_free(model):
            return
        if not self.prices.knows(model, currency=account.currency):
            raise UnknownPrice(model, account.currency)
        if account.balance.available <= 0:
            raise PaymentRequired(account.id, model=model, available=account.balance.available)


@dataclass(frozen=True, slots=True)
class Granting:
    """`asked` is none for what is no graph, which needs no grant."""

    target: Target | None
    asked: GraphTarget | None
    drawn: GrantId | None
    now: Instant

    async def known_in(self, tx: Transaction, schedule_id: ScheduleId, owner: Owner) -> Target | None:
        """The target as it would be saved by a program that says the same again: a revoked grant stays revoked."""
        if self.asked is None or self.target is None or self.asked.grant_id is not None:
            return self.target
        own = await self._own_in(tx, schedule_id, owner)
        if own is None or not own.covers(self.asked.graph_id) or not (own.revoked_at or self._serves(own)):
            return self.target
        return granted(self.target, own.id)

    async def target_in(self, tx: Transaction, schedule_id: ScheduleId, owner: Owner) -> Target | None:
        """Under the grant that is named, that the schedule has, or that is minted for it."""
        if self.asked is None or self.target is None or self.drawn is None:
            return self.target
        own = await self._own_in(tx, schedule_id, owner)
        if self.asked.grant_id is not None:
            await self._require_named(tx, GrantId(self.asked.grant_id), owner, own)
            return self.target
        if own is not None and self._serves(own):
            return granted(self.target, own.id)
        accounts = await tx.accounts.page(owner, after="", most=1)
        if not accounts:
            raise NoAccountError(owner)
        await tx.grants.add(
            Grant(
                id=self.drawn,
                user_id=owner,
                account_id=accounts[0].id,
                scopes=scopes_of([f"graph:execute:{self.asked.graph_id}"]),
                created_at=self.now,
            )
        )
        return granted(self.target, self.drawn)

    async def _own_in(self, tx: Transaction, schedule_id: ScheduleId, owner: Owner) -> Grant | None:
        own = await tx.grants.of_schedule(schedule_id)
        return own if own is not None and own.user_id == owner else None

    def _serves(self, grant: Grant) -> bool:
        is_over = grant.expires_at is not None and grant.expires_at <= self.now
        return grant.revoked_at is None and not is_over and self.asked is not None and grant.covers(self.asked.graph_id)

    async def _require_named(self, tx: Transaction, named: GrantId, owner: Owner, own: Grant | None) -> None:
        """What the schedule has already may stay, even if it was revoked: its runs are refused, not its edits."""
        grant = await tx.grants.get(named)
        if grant is None or grant.user_id != owner or self.asked is None:
            raise InvalidInput(
                "params.grant_id", f"there is no grant {named[:60]!r}", fix="name one of yours, or leave it out"
            )
        if own is None or own.id != grant.id:
            grant.require_good(self.now)
        grant.require_covers(self.asked.graph_id)


async def assign_in(tx: Transaction, schedule: Schedule, *, before: Target | None = None) -> None:
    """Notes beside the schedule which grant its target names."""
    grant_id = grant_of(schedule.target)
    if grant_id is not None or (before is not None and grant_of(before) is not None):
        await tx.grants.assign(schedule.id, None if grant_id is None else GrantId(grant_id))


class NoAccountError(Exception):
    """The work found nobody to pay, and is to be tried again once there is."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner)
        self.owner = owner
