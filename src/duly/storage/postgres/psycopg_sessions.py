"""Callers' connections made by psycopg 3, async or not."""

import asyncio
from typing import Any, NoReturn

import psycopg
from psycopg.rows import tuple_row

from duly.domain.errors import InvalidInput, Unavailable
from duly.storage.postgres.errors import Interrupted, Phase, answered, violated
from duly.storage.statements import Statement


class AsyncSession:
    def __init__(self, raw: "psycopg.AsyncConnection[Any]") -> None:
        self._raw = raw

    @property
    def closed(self) -> bool:
        return self._raw.closed

    @property
    def in_transaction(self) -> bool:
        return _is_in_transaction(self._raw)

    async def fetch(self, statement: Statement, values: tuple[Any, ...], _: Phase) -> list[tuple[Any, ...]]:
        try:
            async with psycopg.AsyncRawCursor(self._raw, row_factory=tuple_row) as cursor:
                await cursor.execute(statement.sql.encode(), _listed(values))
                return [] if cursor.description is None else await cursor.fetchall()
        except psycopg.Error as error:
            _raise_translated(error, closed=self.closed)

    async def execute(self, sql: str, _: Phase) -> None:
        try:
            async with psycopg.AsyncRawCursor(self._raw) as cursor:
                await cursor.execute(sql.encode())
        except psycopg.Error as error:
            _raise_translated(error, closed=self.closed)


class SyncSession:
    """Its statements are waited for in a thread, so that nothing else waits for them."""

    def __init__(self, raw: "psycopg.Connection[Any]") -> None:
        self._raw = raw

    @property
    def closed(self) -> bool:
        return self._raw.closed

    @property
    def in_transaction(self) -> bool:
        return _is_in_transaction(self._raw)

    async def fetch(self, statement: Statement, values: tuple[Any, ...], _: Phase) -> list[tuple[Any, ...]]:
        return await asyncio.to_thread(self._fetch, statement.sql, _listed(values))

    async def execute(self, sql: str, _: Phase) -> None:
        await asyncio.to_thread(self._fetch, sql, None)

    def _fetch(self, sql: str, values: list[Any] | None) -> list[tuple[Any, ...]]:
        try:
            with psycopg.RawCursor(self._raw, row_factory=tuple_row) as cursor:
                cursor.execute(sql.encode(), values)
                return [] if cursor.description is None else cursor.fetchall()
        except psycopg.Error as error:
            _raise_translated(error, closed=self.closed)


def _is_in_transaction(raw: "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]") -> bool:
    """Unless it commits by itself, the next statement begins one."""
    return not raw.autocommit or raw.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE


def _listed(values: tuple[Any, ...]) -> list[Any]:
    """A tuple would be a row, not an array."""
    return [list(value) if isinstance(value, tuple) else value for value in values]


def _raise_translated(error: psycopg.Error, *, closed: bool) -> NoReturn:
    if closed:
        raise Interrupted("the caller's connection was lost", connection_lost=True) from error
    if error.sqlstate == "25P02":
        raise InvalidInput("connection", "its transaction has failed", fix="roll it back first") from error
    if isinstance(error, psycopg.IntegrityError):
        raise violated(error.sqlstate or "", error.diag.constraint_name or error.diag.column_name or "") from error
    meant = answered(error, unknown=False)
    if meant is error:
        raise Unavailable(f"the database refused: {error.diag.message_primary}") from error
    raise meant from error
