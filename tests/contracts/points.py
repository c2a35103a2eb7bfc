"""Stops a Postgres transaction at a named statement, so that another can go by."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from duly.storage.executor import Row
from duly.storage.postgres.executor import PostgresExecutor
from duly.storage.statements import Statement


@dataclass(slots=True)
class Point:
    """`reached` is set where the first run of the statement stands still until `go`; `ran` counts all statements."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    ran: Counter[str] = field(default_factory=Counter)

    async def stand_still(self) -> None:
        self.reached.set()
        await self.go.wait()


@contextlib.contextmanager
def stop_before(name: str) -> Iterator[Point]:
    with _stop_at(name, after=False) as point:
        yield point


@contextlib.contextmanager
def stop_after(name: str) -> Iterator[Point]:
    with _stop_at(name, after=True) as point:
        yield point


@contextlib.contextmanager
def _stop_at(name: str, *, after: bool) -> Iterator[Point]:
    point = Point()
    run = PostgresExecutor._run

    async def stopping(self: PostgresExecutor, statement: Statement, values: tuple[Any, ...]) -> Sequence[Row]:
        point.ran[statement.name] += 1
        is_the_one = statement.name == name and not point.reached.is_set()
        if is_the_one and not after:
            await point.stand_still()
        rows = await run(self, statement, values)
        if is_the_one and after:
            await point.stand_still()
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresExecutor, "_run", stopping)
        try:
            yield point
        finally:
            point.go.set()


async def met(task: "asyncio.Task[Any]") -> None:
    """Time for a task to run into whatever it has to wait for."""
    await asyncio.wait({task}, timeout=0.3)
