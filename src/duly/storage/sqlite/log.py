"""The write-ahead log of a database file: grown once, then written over again and again."""

import os
from contextlib import suppress

import apsw

from duly.storage.sqlite.connection import MEMORY
from duly.storage.sqlite.faults import Poisoned, translated

# About 8 MiB.
CHECKPOINT_PAGES = 4_000
# Whoever has written so much since it opened the database will write more; most processes write less.
GROW_AFTER_PAGES = 64
_FRAME_HEADER_BYTES = 24
_ZEROS = bytes(1 << 20)
# Of the disk's free space, the log may take one part in so many before it is needed.
_ROOM = 10


class Log:
    """Whoever uses the connection keeps the log up when that is due."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._pages = 0
        self._grow_at: int | None = None
        self._is_grown = path == MEMORY
        self.checkpoint_at = CHECKPOINT_PAGES
        connection.set_wal_hook(self._note)

    @property
    def upkeep_due(self) -> bool:
        return self._pages >= self.checkpoint_at or self._is_to_grow

    @property
    def _is_to_grow(self) -> bool:
        return not self._is_grown and self._grow_at is not None and self._pages >= self._grow_at

    def keep_up(self) -> None:
        """Raises Poisoned, and nothing else: any other trouble can wait."""
        if self._is_to_grow:
            self._is_grown = True
            with suppress(OSError):
                self._grow()
        if self._pages >= self.checkpoint_at:
            self._checkpoint()

    def _grow(self) -> None:
        """Fills the file with zeros up to where it will be written over: while it grows, an fsync takes twice as long.

        They are appended, so they cannot meet what another process writes, and they are no frames: whoever recovers the
        log stops reading there.
        """
        wanted = CHECKPOINT_PAGES * (self._connection.pragma("page_size") + _FRAME_HEADER_BYTES)
        log = os.open(f"{self._path}-wal", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            missing = wanted - os.fstat(log).st_size
            disk = os.fstatvfs(log)
            if missing * _ROOM > disk.f_bavail * disk.f_frsize:
                return
            while missing > 0:
                missing -= os.write(log, _ZEROS[:missing])
            os.fdatasync(log)
        finally:
            os.close(log)

    def _checkpoint(self) -> None:
        """Copies the log into the database file as far as readers allow.

        SQLite's automatic checkpoint would swallow a failed fsync, and the next one would reset the log over pages that
        never reached the disk. After any other error the log keeps everything until a later try succeeds.
        """
        # A reader may keep the log from starting anew: do not try after every commit.
        self.checkpoint_at = self._pages + CHECKPOINT_PAGES
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            fault = translated(error, self._path)
            if isinstance(fault, Poisoned):
                raise fault from error

    def _note(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if self._grow_at is None:
            self._grow_at = pages + GROW_AFTER_PAGES
        if pages < self._pages:
            self.checkpoint_at = CHECKPOINT_PAGES
        self._pages = pages
        return apsw.SQLITE_OK
