"""A SQLite file as a place to run works, whatever its tables are."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import apsw

from duly.domain.errors import Unavailable
from duly.ports.clock import Clock
from duly.storage.executor import Executor, Row
from duly.storage.migrations import Migration
from duly.storage.sqlite.arrivals import Arrivals
from duly.storage.sqlite.backup import OnProgress, back_up
from duly.storage.sqlite.batch import Committer
from duly.storage.sqlite.connection import (
    MEMORY,
    READER_BUSY_MS,
    WRITER_BUSY_MS,
    create_file,
    open_reader,
    open_writer,
    real_path,
)
from duly.storage.sqlite.filelock import FileLock, NoLock
from duly.storage.sqlite.readers import ReaderPool, Readers, Reading, SharedReader
from duly.storage.sqlite.schema import migrate
from duly.storage.sqlite.steps import Work
from duly.storage.sqlite.wakeups import SqliteWakeups
from duly.storage.sqlite.writer import Lock, Writer
from duly.storage.statements import Statement

Tx = TypeVar("Tx")
T = TypeVar("T")


class SqliteDatabase(Generic[Tx]):
    """Opened by one process for itself: a forked child opens its own.

    `inline` does everything in the caller's thread and starts none, which makes a simulation deterministic;
    `:memory:` is always inline.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock,
        statements: Mapping[str, Statement],
        migrations: Sequence[Migration],
        begin: Callable[[Executor], Tx],
        inline: bool = False,
        arrivals: Arrivals | None = None,
    ) -> None:
        """May wait while another process migrates."""
        self.path = real_path(path)
        self.clock = clock
        self._statements = statements
        self._inline = inline or self.path == MEMORY
        self._pid = os.getpid()
        self._closed = False
        lock = self._lock()
        self._connection = self._migrated(lock, migrations)
        committer = Committer(
            self._connection, path=self.path, statements=statements, begin=begin, clock=clock, arrivals=arrivals
        )
        self._writer = Writer(committer, lock=lock, clock=clock, announce=self._announce, inline=self._inline)
        self.wakeups = SqliteWakeups(
            clock=clock,
            data_version=self._writer.data_version,
            peers_of=None if self._inline else self.path,
        )
        readers: Readers
        if self.path == MEMORY:
            readers = SharedReader(self._connection, self._writer.mutex, absorb=committer.absorb)
        else:
            readers = ReaderPool(self.path, view=arrivals.view if arrivals else None)
        self._reading = Reading(readers, path=self.path, statements=statements, begin=begin)

    async def transact(self, work: Work[Tx, T], *, single: bool = False) -> T:  # noqa: ARG002  # BEGIN is no round trip here
        self._require_own_process()
        return await self._writer.transact(work)

    def change_at_once(self, name: str, row: Row, topic: str) -> bool | None:
        """Runs a statement that changes one row, if nobody is held up by it; None if somebody would be."""
        self._require_own_process()
        return self._writer.change_at_once(self._statements[name], row, topic)

    async def read(self, work: Work[Tx, T]) -> T:
        self._require_own_process()
        return self._reading.read(work)

    async def backup(self, to: str | Path, *, on_progress: OnProgress | None = None) -> None:
        """A complete copy of this moment's state in a new file; others go on writing meanwhile.

        `on_progress` is told how many pages are copied, of how many, in the thread that copies.
        """
        self._require_own_process()
        if self._inline:
            self._back_up(to, on_progress)
        else:
            await asyncio.to_thread(self._back_up, to, on_progress)

    async def close(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._reading.close()
        try:
            if self._inline:
                self._writer.close()
            else:
                await asyncio.to_thread(self._writer.close)
        finally:  # whoever is cancelled while the writer waits for another process still lets go of the sockets
            self.wakeups.close()

    def _lock(self) -> Lock:
        if self.path == MEMORY:
            return NoLock()
        create_file(self.path)
        return FileLock(f"{self.path}-lock")

    def _migrated(self, lock: Lock, migrations: Sequence[Migration]) -> apsw.Connection:
        lock.acquire()
        try:
            connection = open_writer(self.path, busy_ms=READER_BUSY_MS if self._inline else WRITER_BUSY_MS)
            try:
                migrate(connection, migrations, path=self.path, clock=self.clock)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            lock.release()
            lock.close()
            raise
        lock.release()
        return connection

    def _announce(self, topics: frozenset[str]) -> None:
        self.wakeups.announce(topics)

    def _back_up(self, to: str | Path, on_progress: OnProgress | None) -> None:
        if self.path == MEMORY:
            with self._writer.mutex:
                back_up(self._connection, to, on_progress)
            return
        source = open_reader(self.path)
        try:
            back_up(source, to, on_progress)
        finally:
            source.close()

    def _require_own_process(self) -> None:
        if os.getpid() != self._pid:
            raise Unavailable(
                f"{self.path}: process {self._pid} opened this storage, and a fork cannot share it;"
                " open it again in this process"
            )
