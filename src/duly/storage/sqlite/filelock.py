"""The queue of processes that want to write: a lock on a file beside the database.

SQLite's own write lock is waited for by sleeping and trying again, which starves whoever sleeps longest; the
kernel wakes a waiter of `flock` when the lock is let go, and frees the lock of a process that dies, however
it dies. The file is empty and is never deleted: deleting it while someone waits would split the queue in two.
"""

import fcntl
import os
import stat
import weakref

from duly.storage.sqlite.faults import translated_system


class FileLock:
    """Held by at most one opener at a time, of any process."""

    __slots__ = ("__weakref__", "_fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
        except OSError as error:
            raise translated_system(error, path) from error
        _open_locks.add(self)

    def try_acquire(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def acquire(self) -> None:
        """Waits for as long as it takes, in a thread that has nothing else to do."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            raise translated_system(error, self.path) from error

    def release(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class NoLock:
    """For a database that no other process can reach."""

    __slots__ = ()

    def try_acquire(self) -> bool:
        return True

    def acquire(self) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """A forked child shares its parent's lock: were the parent to die while writing, the child would hold the
    lock for ever without knowing. So it lets go of the file; a child that executes another program does so
    anyway.
    """
    for lock in list(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_let_go_in_child)
