"""A SQLite file that is looked at and left as it is: no lock, no migration, no write."""

from importlib.resources import files
from pathlib import Path
from typing import Self, TypeVar

from duly.ports.clock import Clock
from duly.ports.storage import Work
from duly.storage.migrations import load_migrations
from duly.storage.sqlite.arrivals import Arrivals
from duly.storage.sqlite.connection import open_reader, real_path
from duly.storage.sqlite.readers import ReaderPool, Reading
from duly.storage.sqlite.schema import refuse_other_schema
from duly.storage.sqlite.storage import begin
from duly.storage.statements import load_statements
from duly.storage.transaction import SqlTransaction
from duly.system.clock import SystemClock

T = TypeVar("T")


class SqliteReader:
    """Implements `duly.ports.storage.ReadOnlyStorage`."""

    def __init__(self, path: str, clock: Clock) -> None:
        self.clock = clock
        statements = load_statements("sqlite")
        readers = ReaderPool(path, view=Arrivals(statements).view)
        self._reading: Reading[SqlTransaction] = Reading(readers, path=path, statements=statements, begin=begin)

    @classmethod
    async def open(cls, path: str | Path, *, clock: Clock | None = None) -> Self:
        """The file must be there, with the schema that this package knows."""
        place = real_path(path)
        connection = open_reader(place)
        try:
            known = load_migrations(files("duly.storage.sqlite").joinpath("migrations"))
            refuse_other_schema(connection, known, path=place)
        finally:
            connection.close()
        return cls(place, clock or SystemClock())

    async def read(self, work: Work[T]) -> T:
        return self._reading.read(work)

    async def close(self) -> None:
        self._reading.close()
