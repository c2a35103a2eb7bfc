"""One `duly dev` for each database file: two would run each other's jobs with other handlers."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duly.domain.errors import Conflict, Unavailable


class AlreadyServed(Conflict):
    code = "already_served"

    def __init__(self, database: Path) -> None:
        super().__init__(f"another `duly dev` runs on {database}: stop it, or set DULY_DATABASE_URL to another file")
        self.database = database


def lock_beside(database: Path) -> Path:
    return database.with_name(f"{database.name}.dev")


@contextmanager
def alone_on(database: Path | None) -> Iterator[None]:
    """By a lock that ends with the process, however it ends; a database that is no file is left to its server."""
    if database is None:
        yield
        return
    try:
        lock = lock_beside(database).open("a")
    except FileNotFoundError as error:
        raise Unavailable(f"{database}: the folder {database.parent} does not exist; create it") from error
    except OSError as error:
        why = f"{database}: {error.strerror}; make its folder writable, or set DULY_DATABASE_URL to another file"
        raise Unavailable(why) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyServed(database) from None
        yield
