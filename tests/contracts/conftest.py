"""One text of behaviour, on every store: an async test is given a `world` and runs in a loop of its own.

After each test the tables are held against the laws, whatever the test was about.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import postgres_server
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import World


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def shared_postgres(postgres_server_url: str) -> Iterator[SharedPostgres]:
    """One database for all of these tests: dropping one per test costs a checkpoint each."""
    with postgres_server.fresh_database(postgres_server_url) as url:
        yield SharedPostgres(url)


@pytest.fixture
def place(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if store == "sqlite":
        return str(tmp_path / "duly.db")
    shared: SharedPostgres = request.getfixturevalue("shared_postgres")
    shared.empty()
    return shared.url


@pytest.fixture
def world(store: str, place: str) -> World:
    return World(store, place)


@pytest.fixture
def postgres_world(shared_postgres: SharedPostgres) -> World:
    """For what only Postgres has: transactions that stand still in the middle while others go on."""
    shared_postgres.empty()
    return World("postgres", shared_postgres.url)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(_run_in_its_world(pyfuncitem.obj, arguments))
    return True


async def _run_in_its_world(test: Callable[..., Awaitable[None]], arguments: dict[str, Any]) -> None:
    world = next((argument for argument in arguments.values() if isinstance(argument, World)), None)
    if world is None:
        await test(**arguments)
        return
    await world.open()
    try:
        async with asyncio.timeout(60):
            await test(**arguments)
        await world.keeps_the_laws()
    finally:
        await world.close()
