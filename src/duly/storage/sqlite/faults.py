"""The one place where SQLite's errors become errors of Duly."""

import errno

import apsw

from duly.domain.errors import Unavailable
from duly.storage.errors import Constraint, ConstraintViolated

_FSYNC_FAILED = frozenset({apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC})

# Result code → what happened, and what to do about it.
_STORE_FAULTS = {
    apsw.SQLITE_FULL: ("the disk is full", "free some space, then try again"),
    apsw.SQLITE_IOERR: (
        "the disk failed to read or write",
        "look at the system log and the disk, then try again",
    ),
    apsw.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "check that the path exists and may be written by this user",
    ),
    apsw.SQLITE_READONLY: ("it may not be written", "make the file and its folder writable for this user"),
    apsw.SQLITE_PERM: ("it may not be used", "make the file and its folder writable for this user"),
    apsw.SQLITE_CORRUPT: ("it is damaged", "stop all processes and restore a backup"),
    apsw.SQLITE_NOTADB: ("it is not a SQLite database", "check the path, or restore a backup"),
    apsw.SQLITE_NOMEM: ("memory ran out", "give the process more memory"),
    apsw.SQLITE_INTERRUPT: ("the statement was interrupted", "try again"),
    apsw.SQLITE_NOLFS: ("the file outgrew the file system", "move it to a larger file system"),
    apsw.SQLITE_TOOBIG: ("a value is larger than SQLite can hold", "store less in one row"),
}

_CONSTRAINTS: dict[int, Constraint] = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "unique",
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: "unique",
    apsw.SQLITE_CONSTRAINT_ROWID: "unique",
    apsw.SQLITE_CONSTRAINT_NOTNULL: "not_null",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "foreign_key",
}

_SYSTEM_FAULTS = {
    errno.ENOSPC: _STORE_FAULTS[apsw.SQLITE_FULL],
    errno.EDQUOT: _STORE_FAULTS[apsw.SQLITE_FULL],
    errno.EACCES: _STORE_FAULTS[apsw.SQLITE_READONLY],
    errno.EPERM: _STORE_FAULTS[apsw.SQLITE_READONLY],
    errno.EROFS: _STORE_FAULTS[apsw.SQLITE_READONLY],
    errno.EIO: _STORE_FAULTS[apsw.SQLITE_IOERR],
}


class StillBusy(Exception):  # not an error: it says to try again, and never leaves this package
    """Someone who does not take our file lock holds the database."""


class Poisoned(Unavailable):
    """An fsync failed. The kernel may have dropped what it could not write and call the next fsync a success,
    so nothing this process believes to be on disk can be trusted: only a restart, which reads the disk again,
    helps.
    """


def translated(error: apsw.Error, path: str) -> Exception:
    """The error of Duly for an error of SQLite; that of a statement which is simply wrong stays as it is."""
    extended = getattr(error, "extendedresult", 0)
    code = extended & 0xFF
    if code in (apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED, apsw.SQLITE_PROTOCOL):
        return StillBusy(str(error))
    if code == apsw.SQLITE_CONSTRAINT:
        return _violated(extended, str(error))
    if extended in _FSYNC_FAILED:
        return Poisoned(
            f"{path}: the disk refused to make a write durable (fsync failed), and trying again could lie;"
            " check the disk and restart the process"
        )
    if code in _STORE_FAULTS:
        return _unavailable(path, *_STORE_FAULTS[code])
    return error


def translated_system(error: OSError, path: str) -> Unavailable:
    happened, fix = _SYSTEM_FAULTS.get(error.errno or 0, (error.strerror or str(error), "check the path"))
    return _unavailable(path, happened, fix)


def again(error: Exception) -> Exception:
    """The same refusal for one more caller: an exception raised in two tasks would mix their tracebacks."""
    return type(error)(*error.args)


def _violated(extended: int, message: str) -> ConstraintViolated:
    """SQLite names the rule, or the columns where it has no name, behind a colon."""
    return ConstraintViolated(message.partition(": ")[2] or message, _CONSTRAINTS.get(extended, "check"))


def _unavailable(path: str, happened: str, fix: str) -> Unavailable:
    return Unavailable(f"{path}: {happened}; {fix}")
