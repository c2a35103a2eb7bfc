"""What a SQLite file and the library that reads it say of themselves."""

from importlib.resources import files
from pathlib import Path

import apsw

from duly.storage.facts import StoreFacts
from duly.storage.migrations import load_migrations
from duly.storage.sqlite.connection import open_reader, real_path, sqlite_version
from duly.storage.sqlite.faults import translated
from duly.storage.sqlite.schema import schema_version

# SQLite 3.7.0 to 3.51.2 can, very rarely, forget committed pages when a log is reset between two checkpoints.
_FIRST_AFFECTED = (3, 7, 0)
_FIXED = (3, 51, 3)
_FIXED_EARLIER = ((3, 44, 6), (3, 50, 7))


def sqlite_facts(path: str) -> StoreFacts:
    place = real_path(path)
    connection = open_reader(place)
    try:
        journal_mode = str(connection.pragma("journal_mode"))
        found = schema_version(connection)
    except apsw.Error as error:
        raise translated(error, place) from error
    finally:
        connection.close()
    return StoreFacts(
        engine="sqlite",
        version=sqlite_version(),
        schema_found=found,
        schema_known=len(load_migrations(files("duly.storage.sqlite").joinpath("migrations"))),
        path=place,
        journal_mode=journal_mode,
        may_lose_a_reset_log=is_affected(sqlite_version()),
        file_bytes=_size(place),
        log_bytes=_size(f"{place}-wal"),
    )


def is_affected(version: str) -> bool:
    """Whether this SQLite has the fault of reset logs; two older lines were mended, too."""
    numbers = tuple(int(part) for part in version.split(".")[:3])
    is_mended = any(numbers[:2] == mended[:2] and numbers >= mended for mended in _FIXED_EARLIER)
    return _FIRST_AFFECTED <= numbers < _FIXED and not is_mended


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
