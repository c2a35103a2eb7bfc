"""One text, both stores, each with a database of its own."""

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database_url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if store == "sqlite":
        return str(tmp_path / "duly.db")
    return str(request.getfixturevalue("fresh_postgres_url"))
