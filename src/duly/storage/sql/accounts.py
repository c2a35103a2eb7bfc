"""Accounts, their keys and what came in, in SQL."""

from duly.domain.amounts import Amount
from duly.domain.billing import Account, Balance, Credit, Receipt, UnknownAccount, VirtualKey
from duly.domain.ids import AccountId, Owner
from duly.domain.instants import Instant
from duly.storage.executor import Executor, Row
from duly.storage.sql.holds import receipt_from_row


class SqlAccounts:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def lock_user(self, user: Owner, *, now: Instant) -> None:
        await self._x.fetch("insert_user", id=user, now=now)
        await self._x.fetch("lock_user", id=user)

    async def add(self, account: Account, key: VirtualKey) -> None:
        await self._x.fetch("insert_user", id=account.owner, now=account.created_at)
        await self._x.fetch(
            "insert_account",
            id=account.id,
            owner=account.owner,
            name=account.name,
            currency=account.currency,
            created_at=account.created_at,
        )
        await self._x.fetch(
            "insert_virtual_key",
            id=key.id,
            account=key.account_id,
            is_default=int(key.is_default),
            created_at=key.created_at,
        )

    async def get(self, account_id: AccountId) -> Account | None:
        for row in await self._x.fetch("account_by_id", id=account_id):
            return account_from_row(row)
        return None

    async def default_key(self, account_id: AccountId) -> VirtualKey | None:
        for row in await self._x.fetch("default_key_of", account=account_id):
            return VirtualKey(id=row[0], account_id=row[1], is_default=bool(row[2]), created_at=row[3])
        return None

    async def page(self, owner: Owner | None, *, after: str, most: int) -> list[Account]:
        if owner is None:
            rows = await self._x.fetch("all_accounts", after=after, most=most)
        else:
            rows = await self._x.fetch("accounts_of_owner", owner=owner, after=after, most=most)
        return [account_from_row(row) for row in rows]

    async def reserve(self, account_id: AccountId, amount: Amount) -> bool:
        return bool(await self._x.fetch("reserve_money", id=account_id, amount=amount))

    async def move(self, account_id: AccountId, *, granted: int = 0, held: int = 0, used: int = 0) -> Account:
        for row in await self._x.fetch("move_money", id=account_id, granted=granted, held=held, used=used):
            return account_from_row(row)
        raise UnknownAccount(account_id)

    async def add_credit(self, credit: Credit) -> bool:
        rows = await self._x.fetch(
            "insert_credit",
            id=credit.id,
            account=credit.account_id,
            key=credit.key,
            amount=credit.amount,
            created_at=credit.created_at,
        )
        return bool(rows)

    async def credit(self, account_id: AccountId, key: str) -> Credit | None:
        for row in await self._x.fetch("credit_by_key", account=account_id, key=key):
            return _credit_from_row(row)
        return None

    async def unmetered(self, account_id: AccountId) -> int:
        return int((await self._x.fetch("unmetered_receipts", account=account_id))[0][0])

    async def lines(
        self, account_id: AccountId, *, before: tuple[Instant, str], most: int
    ) -> tuple[list[Credit], list[Receipt]]:
        at, line_id = before
        page = {"account": account_id, "at": at, "id": line_id, "most": most}
        credits_ = await self._x.fetch("credits_before", **page)
        receipts = await self._x.fetch("receipts_before", **page)
        return [_credit_from_row(row) for row in credits_], [receipt_from_row(row) for row in receipts]


def account_from_row(row: Row) -> Account:
    balance = Balance(granted=row[4], available=row[5], held=row[6], charged=row[7], overrun=row[8])
    return Account(id=row[0], owner=row[1], name=row[2], currency=row[3], balance=balance, created_at=row[9])


def _credit_from_row(row: Row) -> Credit:
    return Credit(id=row[0], account_id=row[1], key=row[2], amount=row[3], created_at=row[4])
