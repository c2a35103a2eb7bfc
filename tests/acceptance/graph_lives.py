"""One of two processes that run graphs, started again whenever it is gone, and killed as often as it is asked."""

import asyncio
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.crash_points import MOMENTS, CrashPoint
from tests.acceptance.journal import boottime
from tests.acceptance.processes import POLL_SECONDS

ROOT = Path(__file__).parents[2]
LONGEST_WAIT_FOR_POINT = 6.0
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
    process: "subprocess.Popen[bytes] | None" = None

    async def be_killed(self) -> None:
        points = self._points()
        while self.killed < self.kills:
            point = next(points) if self.killed % 3 else None
            self.start(point)
            await (self._kill_at_random() if point is None else self._let_die_at(point))
            self.killed += 1
        self.start(None)

    def start(self, point: CrashPoint | None) -> None:
        words = [sys.executable, "-m", "tests.acceptance.graph_process", f"--statements={self._statements}"]
        words += [] if point is None else [f"--crash-at={point}"]
        with (self.folder / f"{self.name}.err").open("ab") as stderr:
            self.process = subprocess.Popen(
                words + self.command, env=self.environment, cwd=ROOT, stdin=subprocess.PIPE, stderr=stderr
            )

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()

    @property
    def points(self) -> set[CrashPoint]:
        met = self._statements.read_text().split() if self._statements.exists() else []
        return {CrashPoint(statement, moment) for statement in met for moment in MOMENTS}

    @property
    def _statements(self) -> Path:
        return self.folder / f"{self.name}.statements"

    def _points(self) -> Iterator[CrashPoint]:
        """The steps of a run first, then whatever else it was seen to write, sometimes not the first time."""
        yield from (CrashPoint(statement, moment) for statement in STEPS[self.name] for moment in MOMENTS)
        tried: Counter[CrashPoint] = Counter()
        while True:
            # Some come once in the life of a database: whoever waited for them twice waits no more.
            new = [point for point in self.points - self.died_at if tried[point] < 2]
            point = self.dice.choice(sorted(new or self.died_at))
            tried[point] += 1
            yield point if new else point._replace(nth=self.dice.choice((1, 2, 3)))

    async def _kill_at_random(self) -> None:
        """Even before it is ready, now and then."""
        assert self.process is not None
        await asyncio.sleep(self.dice.uniform(0.2, 3.5))
        assert self.process.poll() is None, f"the {self.name} fell: {self.complaints}"
        self.end()

    async def _let_die_at(self, point: CrashPoint) -> None:
        assert self.process is not None
        deadline = boottime() + LONGEST_WAIT_FOR_POINT
        while self.process.poll() is None and boottime() < deadline:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(POLL_SECONDS)
        if self.process.poll() is not None:
            assert self.process.returncode == -9, f"the {self.name} fell: {self.complaints}"
            self.died_at.add(point._replace(nth=1))
        self.end()

    @property
    def complaints(self) -> str:
        return (self.folder / f"{self.name}.err").read_text()[-3_000:]
