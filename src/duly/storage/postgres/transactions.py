"""Runs work until it commits once, whatever becomes of the connection."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from duly.storage.postgres.connections import Connection, Connections
from duly.storage.postgres.errors import Interrupted, Phase
from duly.storage.postgres.executor import NeedsSnapshot, PostgresExecutor
from duly.storage.postgres.limits import Limits
from duly.storage.postgres.patience import Patience
from duly.storage.statements import Statement

T = TypeVar("T")
ExecutorWork = Callable[[PostgresExecutor], Awaitable[T]]

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class Hints(Protocol):
    """Topics of what was committed: announced after it, or carried by the one statement that commits itself."""

    def announce(self, topics: frozenset[str]) -> None: ...

    def carry(self, topics: Iterable[str]) -> str | None: ...

    def carried(self, topics: frozenset[str]) -> None: ...


class Transactions:
    def __init__(
        self,
        connections: Connections,
        statements: dict[str, Statement],
        limits: Limits,
        hints: Hints,
        *,
        pooled: bool = False,
    ) -> None:
        self._connections = connections
        self._statements = statements
        self._limits = limits
        self._hints = hints
        self._pooled = pooled
        self._several: set[object] = {None}

    async def transact(self, work: ExecutorWork[T], *, single: bool = False) -> T:
        patience = Patience(self._limits.patience)
        rerun = False
        while True:
            connection = await self._connect(patience)
            # A rerun must look for what it may have done before, and a second statement is no longer a single one.
            once = single and not rerun
            # Through a pooler, two messages outside a transaction may reach two servers.
            begin = None if once and not self._pooled else self._begin(_WRITE)
            carry = self._hints.carry if once else None
            attempt = _Attempt(connection, self._statements, begin, once=once, rerun=rerun, carry=carry)
            try:
                return await attempt.run(work)
            except Interrupted as trouble:
                rerun = rerun or trouble.commit_unknown
                failure = trouble
            finally:
                self._release(connection, attempt)
                if attempt.may_have_committed and attempt.topics:
                    self._tell(attempt)
            await patience.pause_or_give_up(failure)

    async def read(self, work: ExecutorWork[T], *, kind: object = None) -> T:
        """Most reads are one look, which is a snapshot by itself and saves two round trips.

        Work of a `kind` that was once found to be more is run in a transaction from then on.
        """
        patience = Patience(self._limits.patience)
        while True:
            connection = await self._connect(patience)
            once = kind not in self._several and not self._pooled
            begin = None if once else self._begin(_READ)
            attempt = _Attempt(connection, self._statements, begin, reading=True, once=once)
            try:
                return await attempt.run(work)
            except NeedsSnapshot:
                self._several.add(kind)
                continue
            except Interrupted as trouble:
                failure = trouble
            finally:
                self._release(connection, attempt)
            await patience.pause_or_give_up(failure)

    async def _connect(self, patience: Patience) -> Connection:
        while True:
            try:
                return await self._connections.acquire()
            except Interrupted as trouble:
                failure = trouble
            await patience.pause_or_give_up(failure)

    def _release(self, connection: Connection, attempt: "_Attempt") -> None:
        if attempt.cancelled and not attempt.discard:
            self._connections.release_cancelled(connection)
        else:
            self._connections.release(connection, discard=attempt.discard)

    def _tell(self, attempt: "_Attempt") -> None:
        topics = frozenset(attempt.topics)
        if attempt.has_told:
            self._hints.carried(topics)
        else:
            self._hints.announce(topics)

    def _begin(self, begin: str) -> str:
        """A pooler forwards no settings at connect, so there they go with the transaction."""
        if not self._pooled:
            return begin
        settings = self._limits.server_settings().items()
        return ";".join([begin, *(f"SET LOCAL {name} = '{value}'" for name, value in settings)])


class _Attempt:
    """One run of the work on one connection."""

    def __init__(
        self,
        connection: Connection,
        statements: dict[str, Statement],
        begin: str | None,
        *,
        reading: bool = False,
        once: bool = False,
        rerun: bool = False,
        carry: Callable[[Iterable[str]], str | None] | None = None,
    ) -> None:
        self._connection = connection
        self._begin = begin
        self._reading = reading
        phase: Phase = "reading" if reading else "writing" if begin else "committing"
        self._executor = PostgresExecutor(connection, statements, phase, once=once, rerun=rerun, carry=carry)
        self.has_told = False
        self.discard = False
        self.cancelled = False
        self.may_have_committed = False

    @property
    def topics(self) -> set[str]:
        return self._executor.topics

    async def run(self, work: ExecutorWork[T]) -> T:
        try:
            if self._begin is not None:
                await self._connection.execute(self._begin, "writing")
            result = await work(self._executor)
            self._executor.raise_swallowed_failure()
            await self._commit()
        except Exception as error:
            await self._roll_back(error)
            raise
        except BaseException:
            # Cancelled in COMMIT, whose answer nobody will read now, the connection is of no more use.
            self.cancelled = True
            self.discard = self.may_have_committed
            self.may_have_committed |= self._begin is None
            raise
        self.may_have_committed = True
        self.has_told = self._executor.carried
        return result

    async def _commit(self) -> None:
        if self._begin is None:
            return
        if self._reading:
            await self._connection.execute("COMMIT", "reading")
            return
        self.may_have_committed = True
        await self._connection.execute("COMMIT", "committing")

    async def _roll_back(self, error: Exception) -> None:
        unknown = isinstance(error, Interrupted) and error.commit_unknown
        # A single statement commits by itself: what the work raises after it comes too late to undo it.
        self.may_have_committed = unknown or (self._begin is None and not self._executor.wrote_nothing)
        self.discard = self._connection.closed or (isinstance(error, Interrupted) and error.connection_lost)
        if self.discard or not self._connection.raw.is_in_transaction():
            return
        try:
            await self._connection.execute("ROLLBACK", "writing")
        except Exception:  # noqa: BLE001 - the work's own error is the one to raise
            self.discard = True
        except asyncio.CancelledError:
            self.cancelled = True
            raise
