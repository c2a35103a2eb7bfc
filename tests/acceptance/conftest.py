"""One text, both stores, each with a database of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests import postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database_url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if store == "sqlite":
        return str(tmp_path / "duly.db")
    return str(request.getfixturevalue("fresh_postgres_url"))


@dataclass(frozen=True, slots=True)
class Place:
    folder: Path
    database_url: str


NewPlace = Callable[[str], Place]


@pytest.fixture
def new_place(tmp_path: Path, postgres_server_url: str) -> Iterator[NewPlace]:
    """As many as scenarios need that mostly wait: then they can wait side by side, on both stores."""
    numbers = count()
    with ExitStack() as databases:

        def new(store: str) -> Place:
            folder = tmp_path / f"{store}-{next(numbers)}"
            folder.mkdir()
            if store == "sqlite":
                return Place(folder, str(folder / "duly.db"))
            return Place(folder, databases.enter_context(postgres_server.fresh_database(postgres_server_url)))

        yield new
