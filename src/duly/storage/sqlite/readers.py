"""Reading beside the writer: a snapshot per read, on connections that cannot write."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

import apsw

from duly.domain.errors import Unavailable
from duly.storage.executor import Executor
from duly.storage.sqlite.connection import open_reader
from duly.storage.sqlite.executor import SqliteExecutor
from duly.storage.sqlite.faults import StillBusy, translated
from duly.storage.sqlite.steps import Work, run_to_end
from duly.storage.statements import Statement

Tx = TypeVar("Tx")
T = TypeVar("T")

_IDLE_CONNECTIONS = 4
_TRIES = 3


class Readers(Protocol):
    def borrow(self) -> apsw.Connection: ...
    def give_back(self, connection: apsw.Connection) -> None: ...
    def close(self) -> None: ...


class ReaderPool:
    """As many connections as are reading at once; a few stay open for the next."""

    def __init__(self, path: str, *, view: str | None = None) -> None:
        self._path = path
        self._view = view
        self._idle: deque[apsw.Connection] = deque()
        self._closed = False

    def borrow(self) -> apsw.Connection:
        if self._closed:
            raise Unavailable(f"{self._path}: the storage is closed; open it again")
        try:
            return self._idle.pop()
        except IndexError:
            return open_reader(self._path, view=self._view)

    def give_back(self, connection: apsw.Connection) -> None:
        if self._closed or len(self._idle) >= _IDLE_CONNECTIONS:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class SharedReader:
    """A database in memory has one connection: a reader borrows it, made unable to write once it has absorbed."""

    def __init__(self, connection: apsw.Connection, mutex: threading.Lock, *, absorb: Callable[[], None]) -> None:
        self._connection = connection
        self._mutex = mutex
        self._absorb = absorb
        self._closed = False

    def borrow(self) -> apsw.Connection:
        self._mutex.acquire()
        if self._closed:
            self._mutex.release()
            raise Unavailable(":memory:: the storage is closed; open it again")
        try:
            self._absorb()
            self._connection.execute("PRAGMA query_only = 1")
        except BaseException:
            self._mutex.release()
            raise
        return self._connection

    def give_back(self, connection: apsw.Connection) -> None:
        connection.execute("PRAGMA query_only = 0")
        self._mutex.release()

    def close(self) -> None:
        self._closed = True


class Reading(Generic[Tx]):
    def __init__(
        self,
        readers: Readers,
        *,
        path: str,
        statements: Mapping[str, Statement],
        begin: Callable[[Executor], Tx],
    ) -> None:
        self._readers = readers
        self._path = path
        self._statements = statements
        self._begin = begin

    def read(self, work: Work[Tx, T]) -> T:
        for _ in range(_TRIES):
            connection = self._readers.borrow()
            try:
                return self._snapshot(connection, work)
            except StillBusy:  # a crash is being recovered elsewhere, which took longer than the busy timeout
                continue
            finally:
                self._readers.give_back(connection)
        raise Unavailable(f"{self._path}: another program holds the database; close it, then try again")

    def close(self) -> None:
        self._readers.close()

    def _snapshot(self, connection: apsw.Connection, work: Work[Tx, T]) -> T:
        executor = SqliteExecutor(connection, self._statements, self._path)
        try:
            connection.execute("BEGIN")
            return run_to_end(work, self._begin(executor))
        except apsw.Error as error:
            raise translated(error, self._path) from error
        finally:
            executor.closed = True
            if connection.in_transaction:
                connection.execute("ROLLBACK")
