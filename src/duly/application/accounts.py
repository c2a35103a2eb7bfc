"""Who pays: accounts are opened, credited, looked at, and asked whether they could pay for a model."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.domain.amounts import amount_of
from duly.domain.billing import (
    LONGEST_MODEL,
    LONGEST_NAME,
    MOST_GRANTED,
    Account,
    Credit,
    CreditKeyReused,
    InsufficientCredit,
    Receipt,
    UnknownAccount,
    UnknownPrice,
    VirtualKey,
    currency_of,
)
from duly.domain.errors import InvalidInput
from duly.domain.ids import AccountId, Owner, VirtualKeyId
from duly.domain.instants import Instant
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.prices import Prices
from duly.ports.storage import Storage, Transaction

CURRENCY = "USD"
LATEST = (Instant(2**62), "")
_MOST_LISTED = 1_000

Line = Credit | Receipt


@dataclass(frozen=True, slots=True)
class Statement:
    """What came in and what was spent, newest first; `before` asks for what comes next, and is none at the end."""

    account: Account
    unmetered: int
    lines: Sequence[Line]
    before: tuple[Instant, str] | None


@dataclass(frozen=True, slots=True)
class Accounts:
    """`owner` is the caller, who sees only its own; an operator names none. To credit is the operator's."""

    storage: Storage
    dice: Dice
    prices: Prices

    async def create(
        self, *, owner: str, name: str, currency: str = CURRENCY, account_id: str | None = None
    ) -> Account:
        """With the default key under which its graphs run; an id that was drawn before is that account, made once."""
        drawn = self.dice.new_id("acct") if account_id is None else account_id_of(account_id)
        account = Account(
            id=AccountId(drawn),
            owner=Owner(text_of(owner, field="owner")),
            name=text_of(name, field="name", longest=LONGEST_NAME),
            currency=currency_of(currency),
            created_at=self.storage.clock.now(),
        )
        key = VirtualKey(
            id=VirtualKeyId(f"vkey_{drawn.removeprefix('acct_')}"),
            account_id=account.id,
            is_default=True,
            created_at=account.created_at,
        )

        async def work(tx: Transaction) -> Account:
            await tx.accounts.add(account, key)
            return await account_in(tx, account.id, account.owner)

        return await self.storage.transact(work)

    async def credit(self, account_id: str, *, amount: int, key: str) -> Account:
        """Once for each key: the same again changes nothing, another amount under it is refused."""
        known = account_id_of(account_id)
        credit = Credit(
            id=self.dice.new_id("crd"),
            account_id=known,
            key=text_of(key, field="key"),
            amount=amount_of(amount, least=1),
            created_at=self.storage.clock.now(),
        )

        async def work(tx: Transaction) -> Account:
            account = await account_in(tx, known, None)
            if await tx.accounts.add_credit(credit):
                return _bounded(await tx.accounts.move(known, granted=credit.amount))
            stored = await tx.accounts.credit(known, credit.key)
            if stored is None or stored.amount != credit.amount:
                raise CreditKeyReused(credit.key)
            return account

        return await self.storage.transact(work)

    async def get(self, account_id: str, *, owner: str | None) -> Account:
        known = account_id_of(account_id)
        return await self.storage.read(lambda tx: account_in(tx, known, owner))

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Account]:
        """In order of id, from behind `after` on."""
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        behind = "" if after is None else account_id_of(after)
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        return await self.storage.read(lambda tx: tx.accounts.page(whose, after=behind, most=most))

    async def default_key(self, account_id: str, *, owner: str | None) -> VirtualKey:
        known = account_id_of(account_id)

        async def work(tx: Transaction) -> VirtualKey:
            if owner is not None:  # else the key alone tells whether there is such an account
                await account_in(tx, known, owner)
            key = await tx.accounts.default_key(known)
            if key is None:
                raise UnknownAccount(account_id)
            return key

        return await self.storage.read(work)

    async def statement(
        self, account_id: str, *, owner: str | None, before: tuple[Instant, str] | None = None, most: int = 100
    ) -> Statement:
        known = account_id_of(account_id)
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)

        async def work(tx: Transaction) -> Statement:
            account = await account_in(tx, known, owner)
            credits_, receipts = await tx.accounts.lines(known, before=before or LATEST, most=most)
            lines: list[Line] = [*credits_, *receipts]
            lines.sort(key=_place, reverse=True)
            lines = lines[:most]
            unmetered = await tx.accounts.unmetered(known)
            return Statement(account, unmetered, lines, _place(lines[-1]) if len(lines) == most else None)

        return await self.storage.read(work)

    async def require_payable(self, account_id: str, model: str | None, *, owner: str | None) -> None:
        """Refuses a paid model on an account with nothing left, or one without a price; free ones, and none, pass."""
        account = await self.get(account_id, owner=owner)
        if model is not None and not self.prices.is_free(text_of(model, field="model", longest=LONGEST_MODEL)):
            self.require_price(account, model)

    def require_price(self, account: Account, model: str) -> None:
        """Refuses a paid model that has no price, or that nothing is left for."""
        if not self.prices.knows(model, currency=account.currency):
            raise UnknownPrice(model, account.currency)
        if account.balance.available <= 0:
            raise InsufficientCredit(account.id, needed=1, available=account.balance.available)


def account_id_of(value: str) -> AccountId:
    return AccountId(text_of(value, field="account_id"))


async def account_in(tx: Transaction, account_id: AccountId, owner: str | None) -> Account:
    """Somebody else's does not exist."""
    account = await tx.accounts.get(account_id)
    if account is None or owner not in (None, account.owner):
        raise UnknownAccount(account_id)
    return account


def _bounded(account: Account) -> Account:
    if account.balance.granted > MOST_GRANTED:
        raise InvalidInput("amount", "is more than an account can take", fix="open another account")
    return account


def _place(line: Line) -> tuple[Instant, str]:
    return line.created_at, line.id
