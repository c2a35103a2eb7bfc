"""Runs named statements on a SQLite connection, for one work in one transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import apsw

from duly.domain.errors import InvalidInput
from duly.storage.executor import Row
from duly.storage.sqlite.faults import translated
from duly.storage.statements import Statement


class SqliteExecutor:
    """Serves one work only; a transaction kept past its end is refused: it would write into a stranger's."""

    __slots__ = ("_connection", "_path", "_statements", "closed", "failure", "topics")

    # A run that failed on SQLite wrote nothing for certain: either its savepoint or its whole batch was
    # rolled back.
    rerun = False

    def __init__(self, connection: apsw.Connection, statements: Mapping[str, Statement], path: str) -> None:
        self._connection = connection
        self._statements = statements
        self._path = path
        self.topics: set[str] = set()
        self.failure: Exception | None = None
        self.closed = False

    async def fetch(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        if self.closed or self.failure is not None:
            self._refuse()
        statement = self._statements[name]
        try:
            return self._connection.execute(statement.sql, statement.bind(parameters)).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error
        except (UnicodeEncodeError, OverflowError, TypeError) as error:
            raise InvalidInput(name, f"a value cannot be stored: {error}") from error

    async def each(self, name: str, rows: Sequence[Row], /, **constants: Any) -> Sequence[Row]:
        if self.closed or self.failure is not None:
            self._refuse()
        statement = self._statements[name]
        bindings = _bindings(statement, rows, constants)
        try:
            if statement.changed is not None:
                return self._changed(statement, rows, bindings)
            if len(bindings) == 1:
                return self._connection.execute(statement.sql, bindings[0]).fetchall()
            return self._connection.executemany(statement.sql, bindings).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error
        except (UnicodeEncodeError, OverflowError, TypeError) as error:
            raise InvalidInput(name, f"a value cannot be stored: {error}") from error

    def _changed(self, statement: Statement, rows: Sequence[Row], bindings: Sequence[Row]) -> Sequence[Row]:
        """Runs the statement for every row and answers the rows that it changed.

        RETURNING would tell, too, at the price of a table that is made and dropped for every row.
        """
        place = statement.columns.index(statement.changed or "")
        connection = self._connection
        if len(rows) == 1:
            connection.execute(statement.sql, bindings[0])
            return [(rows[0][place],)] if connection.changes() else []
        changed: list[Row] = []

        def in_turn() -> Iterator[Row]:
            for row, binding in zip(rows, bindings, strict=True):
                yield binding
                if connection.changes():
                    changed.append((row[place],))

        connection.executemany(statement.sql, in_turn())
        return changed

    def wake(self, topic: str) -> None:
        self.topics.add(topic)

    def _failed(self, error: apsw.Error) -> Exception:
        self.failure = translated(error, self._path)
        return self.failure

    def _refuse(self) -> None:
        if self.closed:
            raise RuntimeError("the transaction has ended: a work may not keep it")
        # As on Postgres, where a statement that failed ends the transaction whatever the work makes of the
        # error.
        raise self.failure or RuntimeError("the transaction has failed")


def _bindings(statement: Statement, rows: Sequence[Row], constants: dict[str, Any]) -> Sequence[Row]:
    if not constants and statement.parameters == statement.columns:
        return rows
    names = tuple(constants)
    tail = tuple(constants.values())
    pick = _picker(statement.parameters, statement.columns, names)
    return [pick(row + tail) for row in rows]


@cache
def _picker(parameters: tuple[str, ...], columns: tuple[str, ...], constants: tuple[str, ...]) -> Callable[[Row], Row]:
    """From a row with the constants behind it to the order in which the statement numbers its parameters."""
    positions = {name: index for index, name in enumerate((*columns, *constants))}
    indexes = [positions[name] for name in parameters]
    if len(indexes) == 1:
        only = indexes[0]
        return lambda row: (row[only],)
    return itemgetter(*indexes)
