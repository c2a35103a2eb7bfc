"""A few long-lived connections, each used by one transaction at a time and never reset in between."""

import asyncio
from contextlib import suppress
from typing import Any, NoReturn

import asyncpg

from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.instants import SECOND, Micros
from duly.storage.postgres.errors import DRIVER_ERRORS, Phase, translated, translated_at_connect
from duly.storage.postgres.limits import Limits
from duly.storage.statements import Statement

_UNDO_SECONDS = 5.0


class Connection:
    """One server connection and the statements prepared on it."""

    __slots__ = ("_cached", "_prepared", "raw")

    def __init__(self, raw: asyncpg.Connection, *, cached: bool = True) -> None:
        self.raw = raw
        self._cached = cached
        self._prepared: dict[str, Any] = {}

    @property
    def closed(self) -> bool:
        return bool(self.raw.is_closed())

    async def fetch(self, statement: Statement, values: tuple[Any, ...], phase: Phase) -> list[tuple[Any, ...]]:
        # asyncpg's records unpack, index and compare as tuples do.
        rows: list[tuple[Any, ...]]
        try:
            if not self._cached:
                rows = await self.raw.fetch(statement.sql, *values)
                return rows
            prepared = self._prepared.get(statement.name)
            if prepared is None:
                prepared = self._prepared[statement.name] = await self.raw.prepare(statement.sql)
            rows = await prepared.fetch(*values)
        except BaseException as error:  # noqa: BLE001 - raised again, in our words
            self._raise_translated(error, phase)
        return rows

    async def execute(self, sql: str, phase: Phase) -> None:
        try:
            await self.raw.execute(sql)
        except BaseException as error:  # noqa: BLE001 - raised again, in our words
            self._raise_translated(error, phase)

    def _raise_translated(self, error: BaseException, phase: Phase) -> NoReturn:
        meant = translated(error, phase, closed=self.closed)
        if meant is error:
            raise error
        raise meant from error


async def connect(url: str, limits: Limits, *, pooled: bool = False) -> asyncpg.Connection:
    """`pooled`: a transaction pooler sits in between, which forwards no settings and keeps no statements."""
    settings = {"application_name": "duly", "TimeZone": "UTC"}
    try:
        return await asyncpg.connect(
            url,
            timeout=limits.connect / SECOND,
            command_timeout=limits.answer / SECOND,
            statement_cache_size=0 if pooled else 100,
            server_settings=settings if pooled else settings | limits.server_settings(),
        )
    except BaseException as error:
        meant = translated_at_connect(error)
        if meant is error:
            raise
        raise meant from (None if isinstance(meant, InvalidInput) else error)


class Connections:
    """Opened when first needed, the warmest lent first, replaced when broken."""

    def __init__(self, url: str, limits: Limits, *, pooled: bool = False) -> None:
        self._url = url
        self._limits = limits
        self._pooled = pooled
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(limits.connections)
        self._undoing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def acquire(self) -> Connection:
        """Every connection acquired is handed to `release` once, in whatever state it is."""
        await self._take_turn()
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        try:
            raw = await connect(self._url, self._limits, pooled=self._pooled)
        except BaseException:
            self._free.release()
            raise
        return Connection(raw, cached=not self._pooled)

    def release(self, connection: Connection, *, discard: bool = False) -> None:
        if discard or self._closed:
            # Not a polite close: it would wait for an answer, and the server rolls back either way.
            connection.raw.terminate()
        elif not connection.closed:
            self._idle.append(connection)
        self._free.release()

    def release_cancelled(self, connection: Connection) -> None:
        """Undoes in the background, so that neither the canceller nor the row locks wait for the other.

        Hanging up would leave a running statement, and its locks, to the server until it is done.
        """
        task = asyncio.get_running_loop().create_task(self._undo(connection), name="duly-undo")
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    async def close(self, *, wait: Micros) -> None:
        """Waits for the transactions under way; those not done in time lose their connection at the end."""
        if self._closed:
            return
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(wait / SECOND):
                for _ in range(self._limits.connections):
                    await self._free.acquire()
        idle, self._idle = self._idle, []
        for connection in idle:
            await close_quietly(connection.raw)

    async def _undo(self, connection: Connection) -> None:
        undone = False
        try:
            # The driver has asked the server to cancel, and waits for that before it sends this.
            await connection.raw.execute("ROLLBACK", timeout=_UNDO_SECONDS)
            undone = True
        except DRIVER_ERRORS:
            return
        finally:
            self.release(connection, discard=not undone)

    async def _take_turn(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._limits.acquire / SECOND):
                await self._free.acquire()
        except TimeoutError:
            waited = self._limits.acquire / SECOND
            raise Unavailable(f"all {self._limits.connections} connections busy for {waited:g} s") from None
        if self._closed:
            self._free.release()
            raise Unavailable("the store is closed")


async def close_quietly(raw: asyncpg.Connection) -> None:
    """Says goodbye if the server listens within a second; hangs up otherwise."""
    try:
        await raw.close(timeout=1)
    except DRIVER_ERRORS:
        raw.terminate()
