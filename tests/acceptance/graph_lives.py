"""One of two processes that run graphs, started again whenever it is gone, and killed as often as it is asked."""

import asyncio
import multiprocessing
import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.crash_points import MOMENTS, CrashPoint
from tests.acceptance.graph_process import live
from tests.acceptance.journal import boottime
from tests.acceptance.processes import POLL_SECONDS

ROOT = Path(__file__).parents[2]
LONGEST_WAIT_FOR_POINT = 5.0
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.acceptance.graph_process", "tests.acceptance.graph_program"])
# What each writes first when it has begun.
FIRST = {"service": "prune_requests", "worker": "open_session"}
# What a run of enough kills must have died at, each before and after its commit.
STEPS = {
    "service": ("insert_receipt", "claim_execution", "insert_hold", "insert_execution_events", "end_execution"),
    "worker": ("note_execution", "renew_session"),
}
LATER_STEPS = {"service": ("renew_execution", "begin_attempt", "end_hold"), "worker": ("open_session",)}


@dataclass
class Role:
    """One process of the two, started again whenever it is gone."""

    name: str
    command: list[str]
    folder: Path
    environment: dict[str, str]
    kills: int
    dice: random.Random
    died_at: set[CrashPoint] = field(default_factory=set)
    killed: int = 0
    process: Any = None
    _began: float = 0.0
    _was_ready: int = 0

    async def be_killed(self) -> None:
        points = self._points()
        while self.killed < self.kills:
            point = next(points) if self.killed % 3 else None
            self.start(point)
            await (self._kill_at_random() if point is None else self._let_die_at(point))
            self.killed += 1
        self.start(None)

    def start(self, point: CrashPoint | None) -> None:
        given = {"name": self.name, "folder": self.folder, "environment": self.environment}
        self.process = FORKED.Process(target=live, args=(self.command, point), kwargs=given)
        self._was_ready, self._began = self._times_ready, boottime()
        self.process.start()

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()

    @property
    def points(self) -> set[CrashPoint]:
        return {CrashPoint(statement, moment) for statement in self.statements for moment in MOMENTS}

    @property
    def statements(self) -> list[str]:
        """Those of each life, in order of their first run in it."""
        path = self.folder / f"{self.name}.statements"
        return path.read_text().split() if path.exists() else []

    def _points(self) -> Iterator[CrashPoint]:
        """The steps of a run first, then whatever else it was seen to write, sometimes not the first time."""
        yield from (CrashPoint(statement, moment) for statement in STEPS[self.name] for moment in MOMENTS)
        tried: Counter[CrashPoint] = Counter()
        while True:
            # Some come once in the life of a database: whoever waited for them twice waits no more.
            # What it must have died at is tried until it has: on a busy machine a point may not come in time.
            new = [
                point
                for point in self.points - self.died_at
                if tried[point] < 2 or point.statement in (*STEPS[self.name], *LATER_STEPS[self.name])
            ]
            if not new:
                again = self.died_at or {CrashPoint(each, moment) for each in STEPS[self.name] for moment in MOMENTS}
                yield self.dice.choice(sorted(again))._replace(nth=self.dice.choice((1, 2, 3)))
                continue
            point = self.dice.choice(sorted(new))
            tried[point] += 1
            yield point

    async def _kill_at_random(self) -> None:
        """Even before it is ready, now and then."""
        if self.dice.random() < 0.9:
            await self._until_ready()
        await asyncio.sleep(self.dice.uniform(0, 1.5))
        assert self.process is not None
        assert self.process.exitcode is None, f"the {self.name} fell: {self.complaints}"
        self.end()

    async def _let_die_at(self, point: CrashPoint) -> None:
        """At a point that does not come it is killed after a while."""
        await self._until_ready()
        assert self.process is not None
        deadline = boottime() + LONGEST_WAIT_FOR_POINT
        while self.process.exitcode is None and boottime() < deadline:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(POLL_SECONDS)
        if self.process.exitcode is not None:
            assert self.process.exitcode == -signal.SIGKILL, f"the {self.name} fell: {self.complaints}"
            self.died_at.add(point._replace(nth=1))
        self.end()

    async def _until_ready(self) -> None:
        """By what it writes to its store first, or its end, which may come before."""
        assert self.process is not None
        while self.process.exitcode is None and self._times_ready == self._was_ready:
            assert boottime() < self._began + 120, f"the {self.name} does not begin: {self.complaints}"
            await asyncio.sleep(POLL_SECONDS)

    @property
    def _times_ready(self) -> int:
        return self.statements.count(FIRST[self.name])

    @property
    def complaints(self) -> str:
        return (self.folder / f"{self.name}.err").read_text()[-3_000:]
