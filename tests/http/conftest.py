"""The API on every store: an async test is given a `site` and runs in a loop of its own."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.http.site import Site


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "duly.db") if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))


@pytest.fixture
def site(place: str) -> Site:
    return Site(place)


@pytest.fixture
def quick_site() -> Site:
    """For what no store has a say in."""
    return Site(":memory:")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(_run(pyfuncitem.obj, arguments))
    return True


async def _run(test: Callable[..., Awaitable[None]], arguments: dict[str, Any]) -> None:
    site = next((argument for argument in arguments.values() if isinstance(argument, Site)), None)
    if site is None:
        await test(**arguments)
        return
    await site.open()
    try:
        async with asyncio.timeout(120):
            await test(**arguments)
    finally:
        await site.close()
