"""Connections to one SQLite file, all set up alike."""

import os
import stat
from pathlib import Path

import apsw

from duly.domain.errors import Unavailable
from duly.storage.sqlite.faults import translated, translated_system

MEMORY = ":memory:"

# Committing waits for other processes at the file lock, not here: this covers programs that do not know our
# lock, and the instants in which a reader recovers the log after a crash. Short for the writer, who may be
# standing in an event loop and would rather hand over to its thread.
WRITER_BUSY_MS = 20
READER_BUSY_MS = 5_000

_CACHED_STATEMENTS = 512
# Small pages, because a commit of one job writes three of them, whatever they hold.
_SETTINGS = """
PRAGMA page_size = 2048;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16384;
PRAGMA trusted_schema = OFF;
"""
# No mmap: an I/O error in mapped memory is a SIGBUS that ends the process instead of an error that can be
# told.
_WRITER_SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA journal_size_limit = 16777216;
PRAGMA wal_autocheckpoint = 0;
"""


def sqlite_version() -> str:
    """Of the library inside apsw, which may differ from the system's."""
    return apsw.sqlite_lib_version()


def real_path(path: str | Path) -> str:
    """One name per file however it was reached, since the lock and the sockets are named after it."""
    return MEMORY if str(path) == MEMORY else os.path.realpath(path)


def file_at(path: str) -> tuple[int, int] | None:
    """Which file the name leads to, if any."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


def create_file(path: str) -> None:
    """Makes the file if need be, readable by its owner only: payloads are nobody else's business.

    SQLite gives its log and shared memory the permissions of the file, so loosening one loosens all.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise Unavailable(f"{path}: the folder {folder} does not exist; create it")
    if Path(path).is_dir():
        raise Unavailable(f"{path}: this is a folder; name a file in it")
    if Path(path).exists():
        # Not opened here: closing it would drop every POSIX lock that this process has on it, and with them SQLite's.
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR))
    except FileExistsError:
        return
    except OSError as error:
        raise translated_system(error, path) from error


def open_writer(path: str, *, busy_ms: int = WRITER_BUSY_MS) -> apsw.Connection:
    """The connection that writes; the caller holds the file lock, as changing to WAL wants the file alone."""
    connection = _opened(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        connection.set_busy_timeout(READER_BUSY_MS)
        connection.execute(_SETTINGS)
        if path != MEMORY:
            _require_wal(connection, path)
        connection.execute(_WRITER_SETTINGS)
        connection.set_busy_timeout(busy_ms)
    except apsw.Error as error:
        connection.close()
        raise translated(error, path) from error
    except Unavailable:
        connection.close()
        raise
    return connection


def open_reader(path: str, *, view: str | None = None) -> apsw.Connection:
    """A connection that cannot write; sees each commit once it is acknowledged, and never blocks one.

    `view` is made for this connection alone, and stands before a table of the same name.
    """
    connection = _opened(path, apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(READER_BUSY_MS)
        connection.execute(_SETTINGS)
        if view is not None:
            connection.execute(view)
    except apsw.Error as error:
        connection.close()
        raise translated(error, path) from error
    return connection


def _opened(path: str, flags: int) -> apsw.Connection:
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=_CACHED_STATEMENTS)
        # One plan per statement, whatever is bound: a partial index made SQLite prepare anew for every value, which
        # took ten times as long as running the statement.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    except apsw.Error as error:
        raise translated(error, path) from error
    return connection


def _require_wal(connection: apsw.Connection, path: str) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise Unavailable(f"{path}: this file system cannot share memory (journal mode {mode}); use a local disk")
