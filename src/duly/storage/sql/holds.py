"""Holds and their receipts, in SQL."""

from typing import Any

from duly.domain.billing import Hold, HoldState, Receipt, Usage
from duly.domain.ids import AccountId, Owner
from duly.domain.instants import Instant, Micros
from duly.storage.executor import Executor, Row


class SqlHolds:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, hold: Hold) -> tuple[Hold, Owner | None] | None:
        rows = await self._x.fetch(
            "insert_hold",
            run_id=hold.run_id,
            attempt=hold.attempt,
            account=hold.account_id,
            schedule_id=hold.schedule_id,
            amount=hold.amount,
            era=hold.era,
            expires_at=hold.expires_at,
            now=hold.held_at,
        )
        return (_hold_from_row(rows[0]), rows[0][14]) if rows else None

    async def get(self, run_id: str, attempt: int) -> Hold | None:
        for row in await self._x.fetch("hold_by_key", run_id=run_id, attempt=attempt):
            return _hold_from_row(row)
        return None

    async def lock(self, run_id: str, attempt: int) -> Hold | None:
        for row in await self._x.fetch("hold_by_key_locked", run_id=run_id, attempt=attempt):
            return _hold_from_row(row)
        return None

    async def renew(self, hold: Hold, *, era: str, expires_at: Micros) -> None:
        await self._x.fetch("renew_hold", era=era, expires_at=expires_at, **_key(hold))

    async def count_at(self, hold: Hold, counted_at: Instant) -> None:
        await self._x.fetch("count_hold_at", counted_at=counted_at, **_key(hold))

    async def end(self, run_id: str, attempt: int, state: HoldState, *, now: Instant) -> Hold | None:
        for row in await self._x.fetch("end_hold", run_id=run_id, attempt=attempt, state=state.value, now=now):
            return _hold_from_row(row)
        return None

    async def add_receipt(self, receipt: Receipt) -> bool:
        usage = receipt.usage
        rows = await self._x.fetch(
            "insert_receipt",
            id=receipt.id,
            account=receipt.account_id,
            virtual_key_id=receipt.virtual_key_id,
            run_id=receipt.run_id,
            attempt=receipt.attempt,
            unit=receipt.unit,
            model=None if usage is None else usage.model,
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=None if usage is None else usage.output_tokens,
            cache_read_tokens=None if usage is None else usage.cache_read_tokens,
            cache_write_tokens=None if usage is None else usage.cache_write_tokens,
            amount=receipt.amount,
            created_at=receipt.created_at,
            price=receipt.price,
            reference=receipt.source_reference,
        )
        return bool(rows)

    async def receipt(self, reference: str) -> Receipt | None:
        for row in await self._x.fetch("receipt_by_reference", reference=reference):
            return receipt_from_row(row)
        return None

    async def spend(self, hold: Hold, receipt: Receipt) -> None:
        await self._x.fetch(
            "spend_hold", amount=receipt.amount or 0, unmetered=int(receipt.amount is None), **_key(hold)
        )

    async def run_out(self, *, era: str, lease_now: Micros, most: int) -> list[Hold]:
        rows = await self._x.fetch("holds_run_out", era=era, lease_now=lease_now, most=most)
        return [_hold_from_row(row) for row in rows]

    async def open_of(self, account_id: AccountId, *, most: int) -> list[Hold]:
        rows = await self._x.fetch("open_holds_of_account", account=account_id, most=most)
        return [_hold_from_row(row) for row in rows]

    async def of_run(self, run_id: str) -> list[Hold]:
        return [_hold_from_row(row) for row in await self._x.fetch("holds_of_run", run_id=run_id)]

    async def receipts_of_run(self, run_id: str, *, most: int) -> list[Receipt]:
        return [receipt_from_row(row) for row in await self._x.fetch("receipts_of_run", run_id=run_id, most=most)]

    async def count_receipts(self, run_id: str) -> int:
        return int((await self._x.fetch("count_receipts_of_run", run_id=run_id))[0][0])


def _key(hold: Hold) -> dict[str, Any]:
    return {"run_id": hold.run_id, "attempt": hold.attempt}


def _hold_from_row(row: Row) -> Hold:
    return Hold(
        run_id=row[0],
        attempt=row[1],
        account_id=row[2],
        virtual_key_id=row[3],
        schedule_id=row[4],
        amount=row[5],
        state=HoldState(row[6]),
        spent=row[7],
        unmetered=row[8],
        era=row[9],
        expires_at=row[10],
        held_at=row[11],
        counted_at=row[12],
        ended_at=row[13],
    )


def receipt_from_row(row: Row) -> Receipt:
    usage = None
    if row[6] is not None:
        usage = Usage(
            model=row[6],
            input_tokens=row[7],
            output_tokens=row[8],
            cache_read_tokens=row[9],
            cache_write_tokens=row[10],
        )
    return Receipt(
        id=row[0],
        account_id=row[1],
        virtual_key_id=row[2],
        run_id=row[3],
        attempt=row[4],
        unit=row[5],
        usage=usage,
        amount=row[11],
        created_at=row[12],
        price=row[13],
    )
