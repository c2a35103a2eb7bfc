"""A complete copy of a database that is in use."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import apsw

from duly.domain.errors import Conflict, InvalidInput, Unavailable
from duly.storage.sqlite.faults import translated, translated_system

_PAGES_PER_STEP = 2_000

OnProgress = Callable[[int, int], None]


def back_up(source: apsw.Connection, to: str | Path, on_progress: OnProgress | None = None) -> None:
    """Copies one snapshot of `source`, while writers go on, into a new file that appears only when complete.

    Pages are copied inside one read transaction: without it every commit would make the copy begin again.
    """
    target = Path(to).absolute()
    _require_free(target)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        _copy(source, partial, on_progress)
        _require_sound(partial)
        _publish(partial, target)
    except apsw.Error as error:
        raise translated(error, str(target)) from error
    except FileExistsError as error:
        raise _taken(target) from error
    except OSError as error:
        raise translated_system(error, str(target)) from error
    finally:
        for leftover in (partial, partial.with_name(f"{partial.name}-journal")):
            with contextlib.suppress(FileNotFoundError):
                leftover.unlink()


def _require_free(target: Path) -> None:
    if not target.parent.is_dir():
        raise InvalidInput("to", f"the folder {target.parent} does not exist", fix="create it")
    if target.exists() or target.is_symlink():
        raise _taken(target)


def _taken(target: Path) -> Conflict:
    return Conflict(f"{target} exists, and a backup never overwrites; choose another name or move it away")


def _copy(source: apsw.Connection, partial: Path, on_progress: OnProgress | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()  # of an earlier process with our id that died
    os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    copy = apsw.Connection(str(partial))
    try:
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES_PER_STEP)
                if on_progress is not None:
                    on_progress(backup.page_count - backup.remaining, backup.page_count)
        # One file, without a log beside it that a copy by hand would forget.
        copy.pragma("journal_mode", "delete")
    finally:
        copy.close()
        if source.in_transaction:
            source.execute("ROLLBACK")


def _require_sound(partial: Path) -> None:
    copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        verdict = copy.pragma("integrity_check")
    finally:
        copy.close()
    if verdict != "ok":
        raise Unavailable(f"the copy is damaged ({verdict}), so the database may be; check it and its disk")


def _publish(partial: Path, target: Path) -> None:
    _sync(partial, os.O_RDWR)
    os.link(partial, target)  # a rename would overwrite what someone put there meanwhile
    partial.unlink()
    _sync(target.parent, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
