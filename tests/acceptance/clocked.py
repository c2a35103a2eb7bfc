"""Processes on a store whose clock a test may set."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import postgres_server
from tests.acceptance.fake_time import FakeTime
from tests.acceptance.processes import Workers


@dataclass(frozen=True, slots=True)
class Clocked:
    clock: FakeTime
    database_url: str
    workers: Workers


@contextmanager
def clocked(store: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Clocked]:
    """SQLite's processes read the machine's clock, those of Postgres read the server's: that is the one to be set."""
    clock = FakeTime()
    folder.mkdir()
    try:
        if store == "sqlite":
            url = str(folder / "duly.db")
            with Workers(url, folder, lease_ms=30_000, environment={**environment, **clock.environment}) as workers:
                yield Clocked(clock, url, workers)
            return
        with (
            postgres_server.running_postgres_in(environment=clock.environment) as (_, url),
            Workers(url, folder, lease_ms=30_000, environment=environment) as workers,
        ):
            yield Clocked(clock, url, workers)
    finally:
        clock.close()
