"""Commits many callers' works at once, so that they share the one thing that is dear: the fsync."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import apsw

from duly.domain.errors import Unavailable
from duly.domain.instants import Micros
from duly.ports.clock import Clock
from duly.storage.errors import ConstraintViolated
from duly.storage.executor import Executor, Row
from duly.storage.sqlite.arrivals import Arrivals
from duly.storage.sqlite.connection import MEMORY, file_at
from duly.storage.sqlite.executor import SqliteExecutor
from duly.storage.sqlite.faults import StillBusy, again, translated
from duly.storage.sqlite.log import Log
from duly.storage.sqlite.pending import Pending
from duly.storage.sqlite.steps import run_to_end
from duly.storage.statements import Statement

Tx = TypeVar("Tx")

# However many works are waiting, whoever comes first is not kept from its answer for longer than about this.
BATCH_MICROS = Micros(50_000)
# How often to look whether the file is still there. What was acknowledged just before it was taken away is gone with
# it, too, so to look more often would promise nothing more.
FILE_LOOK_MICROS = Micros(5_000)


class _BatchLostError(Exception):
    """The whole transaction is gone because of one work, though the disk is well: the others deserve another
    run.
    """


class Committer(Generic[Tx]):
    """The writing connection. Its user makes sure that only one thread is in here at a time."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        path: str,
        statements: Mapping[str, Statement],
        begin: Callable[[Executor], Tx],
        clock: Clock,
        arrivals: Arrivals | None = None,
    ) -> None:
        self.connection = connection
        self.path = path
        self.log = Log(connection, path)
        self._arrivals = arrivals
        self._statements = statements
        self._begin = begin
        self._clock = clock
        self._file = None if path == MEMORY else file_at(path)
        self._look_at = 0

    def commit(self, batch: list[Pending[Tx]], topics: set[str]) -> int:
        """How many of the batch, from its beginning, now have their outcome; adds the topics of their works.

        Raises StillBusy with nothing done. A fault of the disk is the outcome of all.
        """
        try:
            self._require_same_file(self._clock.lease_now())
            return self._commit_together(batch, topics) if len(batch) > 1 else self._commit_alone(batch[0], topics)
        except Unavailable as fault:
            self._roll_back()
            for pending in batch:
                pending.error = again(fault)
            return len(batch)
        except _BatchLostError:
            self._roll_back()
            return self._commit_one_by_one(batch, topics)
        except BaseException:
            self._roll_back()
            raise

    def change(self, sql: str, row: Row, now: Micros) -> bool:
        """One statement, which commits by itself; whether it changed a row."""
        self._require_same_file(now)
        if self._arrivals is None:
            self._execute(sql, row)
            return self.connection.changes() > 0
        if self._arrivals.are_many:
            return self._change_after_absorbing(sql, row)
        self._execute(sql, row)
        if not self.connection.changes():
            return False
        self._arrivals.note()
        return True

    def _change_after_absorbing(self, sql: str, row: Row) -> bool:
        try:
            self._begin_to_write()
            self._execute(sql, row)
            is_changed = self.connection.changes() > 0
            self._execute("COMMIT")
        finally:
            self._roll_back()
        return is_changed

    def absorb(self) -> None:
        """Makes jobs of what has arrived, in a transaction of its own."""
        try:
            self._begin_to_write()
            self._execute("COMMIT")
        finally:
            self._roll_back()

    def data_version(self) -> int:
        """Changes when another connection commits, never by commits of this one."""
        return int(self.connection.pragma("data_version"))

    def _require_same_file(self, now: Micros) -> None:
        """A file that was deleted or replaced takes writes until we close it, and then they are gone."""
        if self._file is None or now < self._look_at:
            return
        if self._file != file_at(self.path):
            raise Unavailable(
                f"{self.path}: the file was deleted or replaced; put it back or restart the process, then try again"
            )
        self._look_at = now + FILE_LOOK_MICROS

    def _commit_alone(self, pending: Pending[Tx], topics: set[str]) -> int:
        self._begin_to_write()
        heard = self._run(pending)
        if pending.error is None:
            try:
                self._execute("COMMIT")
                topics |= heard
            except ConstraintViolated as error:  # one that the schema defers to the end
                pending.error = error
        self._roll_back()
        return 1

    def _commit_together(self, batch: list[Pending[Tx]], topics: set[str]) -> int:
        self._begin_to_write()
        stop_at = self._clock.lease_now() + BATCH_MICROS
        heard: set[str] = set()
        for ran, pending in enumerate(batch):
            if self._clock.lease_now() > stop_at:
                batch = batch[:ran]
                break
            self._run_in_savepoint(pending, heard)
        try:
            self._execute("COMMIT")
        except ConstraintViolated as error:  # deferred to the end: whose it is, only one by one can tell
            raise _BatchLostError from error
        topics |= heard
        return len(batch)

    def _commit_one_by_one(self, batch: list[Pending[Tx]], topics: set[str]) -> int:
        """Clean works are not punished for a stranger's: each gets a transaction of its own."""
        for done, pending in enumerate(batch):
            try:
                self.commit([pending], topics)
            except StillBusy:
                if done == 0:
                    raise
                return done
        return len(batch)

    def _run_in_savepoint(self, pending: Pending[Tx], heard: set[str]) -> None:
        self._execute("SAVEPOINT work")
        topics = self._run(pending)
        if pending.error is None:
            heard |= topics
        elif self.connection.in_transaction:
            self._execute("ROLLBACK TO work")
        else:  # a trigger or a conflict clause rolled back everything
            raise _BatchLostError
        self._execute("RELEASE work")

    def _run(self, pending: Pending[Tx]) -> set[str]:
        """Leaves the outcome in `pending`, and answers the topics to announce if it commits."""
        executor = SqliteExecutor(self.connection, self._statements, self.path)
        try:
            pending.value = run_to_end(pending.work, self._begin(executor))
            pending.error = executor.failure  # should the work have hidden it: its transaction has failed
        except Exception as error:  # noqa: BLE001  # whatever it is, it goes to this caller alone
            pending.error = error
        executor.closed = True
        if isinstance(executor.failure, Unavailable | StillBusy):
            raise executor.failure
        return executor.topics

    def _begin_to_write(self) -> None:
        self._execute("BEGIN IMMEDIATE")
        if self._arrivals is not None:
            try:
                self._arrivals.absorb(self.connection)
            except apsw.Error as error:
                raise translated(error, self.path) from error

    def _execute(self, sql: str, row: Row | None = None) -> None:
        try:
            self.connection.execute(sql, row)
        except apsw.Error as error:
            raise translated(error, self.path) from error

    def _roll_back(self) -> None:
        # A full disk or an I/O error may have rolled back already.
        if self.connection.in_transaction:
            self._execute("ROLLBACK")
