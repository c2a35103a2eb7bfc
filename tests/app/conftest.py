"""An app on each store, with a database of its own, and a loop for async tests."""

import asyncio
import inspect
from pathlib import Path

import pytest

from duly import Duly, Settings

PATIENCE_SECONDS = 60


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database_url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if store == "sqlite":
        return str(tmp_path / "duly.db")
    return str(request.getfixturevalue("fresh_postgres_url"))


@pytest.fixture
def app(database_url: str) -> Duly:
    return Duly(settings=Settings(database_url=database_url))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def in_time() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await pyfuncitem.obj(**arguments)

    asyncio.run(in_time())
    return True
