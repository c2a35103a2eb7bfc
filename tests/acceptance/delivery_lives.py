"""A worker or a courier that is started again whenever it is gone, and killed as often as it is asked."""

import asyncio
import json
import multiprocessing
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.crash_points import MOMENTS, CrashPoint
from tests.acceptance.delivery_process import ANSWERED, CONNECTED, RESOLVED, SENT, live
from tests.acceptance.journal import boottime
from tests.acceptance.processes import POLL_SECONDS, until

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.acceptance.delivery_process"])
LONGEST_WAIT_FOR_POINT = 8.0
PATIENCE_SECONDS = 120


def _both(*statements: str) -> list[CrashPoint]:
    return [CrashPoint(statement, moment) for statement in statements for moment in MOMENTS]


# What a run of enough kills must have died at. The first are of what follows a call: there it may be made twice.
STEPS: dict[str, Sequence[CrashPoint]] = {
    "courier": (
        SENT,
        ANSWERED,
        *_both("report_delivery", "claim_delivery", "take_from_outbox", "insert_event", "insert_delivery"),
        RESOLVED,
        CONNECTED,
        *_both("insert_attempt"),
    ),
    "worker": _both("settle_group", "end_members"),
}
# How a job's end is written, which is not the same on every store and at every time: those of them that were seen.
ENDS = ("finish", "finish_alike", "record_finished")


@dataclass
class Mortal:
    """`deaths` has the last moment at which each process may have done anything."""

    role: str
    name: str
    folder: Path
    environment: dict[str, str]
    kills: int
    dice: random.Random
    died_at: set[CrashPoint]
    first: int = 0
    deaths: dict[int, float] = field(default_factory=dict)
    process: Any = None
    notes: "Notes" = field(init=False)

    def __post_init__(self) -> None:
        self.notes = Notes(self.folder / f"{self.role}.journal")

    async def be_killed(self) -> None:
        points = self._points()
        while len(self.deaths) < self.kills:
            point = None if len(self.deaths) % 3 == 2 else next(points)
            self.start(point)
            await self._be_ready()
            await (self._die_by_chance() if point is None else self._die_at(point))
        self.start(None)

    def start(self, point: CrashPoint | None) -> None:
        given = {"name": self.name, "folder": self.folder, "environment": self.environment}
        self.process = FORKED.Process(target=live, args=(self.role, point), kwargs=given)
        self.process.start()

    async def stop(self) -> None:
        """As an operator would."""
        await self._be_ready()
        self.process.terminate()
        await until(lambda: self.process.exitcode is not None, within=60, what=f"{self.name} ends")
        assert self.process.exitcode == 0, self.complaints

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()

    @property
    def seen(self) -> set[str]:
        """Statements that write, of all processes of this role."""
        path = self.folder / f"{self.role}.statements"
        return set(path.read_text().split()) if path.exists() else set()

    @property
    def wanted(self) -> set[CrashPoint]:
        ends = self.seen.intersection(ENDS) if self.role == "worker" else ()
        return {*STEPS[self.role], *_both(*ends)}

    @property
    def complaints(self) -> str:
        return (self.folder / f"{self.name}.err").read_text()[-3_000:]

    def _points(self) -> Iterator[CrashPoint]:
        """The steps first, then whatever else it was seen to write, sometimes not the first time."""
        steps = STEPS[self.role]
        yield from (steps[place % len(steps)] for place in range(self.first, self.first + len(steps)))
        while True:
            missing = sorted(self.wanted - self.died_at)
            point = self.dice.choice(missing or sorted({*_both(*self.seen), *self.wanted}))
            yield point if missing else point._replace(nth=self.dice.choice((1, 2, 5)))

    async def _die_by_chance(self) -> None:
        await asyncio.sleep(self.dice.uniform(0, 1.0))
        assert self.process.exitcode is None, f"the {self.name} fell: {self.complaints}"
        self._killed()

    async def _die_at(self, point: CrashPoint) -> None:
        """At a point that does not come it is killed after a while."""
        deadline = boottime() + LONGEST_WAIT_FOR_POINT
        while self.process.exitcode is None and boottime() < deadline:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(POLL_SECONDS)
        if self.process.exitcode is not None:
            assert self.process.exitcode == -signal.SIGKILL, f"the {self.name} fell: {self.complaints}"
            self.died_at.add(point._replace(nth=1))
        self._killed()

    def _killed(self) -> None:
        self.end()
        self.deaths[self.process.pid] = boottime()

    async def _be_ready(self) -> None:
        """Or dead, which may come before."""
        pid = self.process.pid
        await until(
            lambda: self.process.exitcode is not None or pid in self.notes.ready(),
            within=PATIENCE_SECONDS,
            what=f"the {self.name} begins",
        )


class Notes:
    """What processes of a role have noted so far; `read` adds what came since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._lines: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offset += len(whole)
            self._lines += map(json.loads, whole.splitlines())
        return self._lines

    def ready(self) -> set[int]:
        return {line["pid"] for line in self.read() if line["event"] == "ready"}
