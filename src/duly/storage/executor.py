"""What the shared SQL stores ask of a database connection inside one transaction."""

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Executor(Protocol):
    """Runs named statements in the current transaction."""

    @property
    def rerun(self) -> bool:
        """True when an earlier run of the same work may have committed without our being told."""

    async def fetch(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Runs one statement and answers its rows."""

    async def each(self, name: str, rows: Sequence[Row], /, **constants: Any) -> Sequence[Row]:
        """Runs the statement for every row, in order, and answers all the rows it returned.

        A row's values are those of the statement's `-- columns:` line; `constants` are its other parameters.
        Postgres takes each column as one array, SQLite runs the statement row by row: the text differs, the
        meaning may not. Rows come back in no promised order.
        """

    def wake(self, topic: str) -> None:
        """Announces the topic once this transaction has committed."""
