"""Named statements on one connection; a batch travels as one array per column."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from duly.storage.executor import Row
from duly.storage.postgres.connections import Connection
from duly.storage.postgres.errors import Phase
from duly.storage.statements import Statement


class NeedsSnapshot(Exception):
    """Work that reads turned out to be more than one look."""


class PostgresExecutor:
    """`carry` answers the hint that a statement which commits by itself may take along, if it may."""

    __slots__ = (
        "_carry",
        "_connection",
        "_failure",
        "_once",
        "_phase",
        "_statements",
        "carried",
        "ran",
        "rerun",
        "topics",
    )

    def __init__(
        self,
        connection: Connection,
        statements: dict[str, Statement],
        phase: Phase,
        *,
        once: bool = False,
        rerun: bool = False,
        carry: Callable[[Iterable[str]], str | None] | None = None,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._phase = phase
        self._once = once
        self._carry = carry
        self.rerun = rerun
        self.carried = False
        self.ran = 0
        self.topics: set[str] = set()
        self._failure: BaseException | None = None

    async def fetch(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        statement = self._statements[name]
        return await self._run(statement, statement.bind(parameters))

    async def each(self, name: str, rows: Sequence[Row], /, **constants: Any) -> Sequence[Row]:
        if not rows:
            return []
        statement = self._statements[name]
        if len(rows) == 1 and statement.alone is not None:
            return await self._alone(self._statements[statement.alone], rows[0], constants)
        for column, array in zip(statement.columns, zip(*rows, strict=True), strict=True):
            constants[column] = _folded(array, may_repeat=column in statement.repeats)
        return await self._run(statement, statement.bind(constants))

    async def _alone(self, lone: Statement, row: Row, constants: dict[str, Any]) -> Sequence[Row]:
        if lone.telling is not None and self._once and self.topics and self._carry is not None:
            hint = self._carry(self.topics)
            if hint is not None:
                self.carried = True
                lone = self._statements[lone.telling]
                constants["hint"] = hint
        return await self._run(lone, lone.bind_one(row, constants))

    def wake(self, topic: str) -> None:
        self.topics.add(topic)

    def raise_swallowed_failure(self) -> None:
        """A transaction with a failed statement is lost: Postgres answers its COMMIT by rolling back."""
        if self._failure is not None:
            raise self._failure

    @property
    def wrote_nothing(self) -> bool:
        return self.ran == 0 or self._failure is not None

    async def _run(self, statement: Statement, values: tuple[Any, ...]) -> Sequence[Row]:
        self.ran += 1
        if self._once and self._phase == "reading" and not (self.ran == 1 and statement.only_looks):
            self._failure = NeedsSnapshot()
            raise self._failure
        if self._once and self.ran > 1:
            raise RuntimeError(f"{statement.name} is the second statement of work that promised a single one")
        try:
            return await self._connection.fetch(statement, values, self._phase)
        except BaseException as failure:
            self._failure = failure
            raise


def _folded(array: tuple[Any, ...], *, may_repeat: bool) -> tuple[Any, ...]:
    """The first value alone where it stands for all: the driver looks at every element of an array, more than once.

    unnest() makes the missing ones NULL, which is what they are, or what the statement fills in.
    """
    first = array[0]
    return array[:1] if (first is None or may_repeat) and array.count(first) == len(array) else array
