"""What it costs to have a graph executed: from when its slot is due to the graph's entry, and to the run's durable end.

Timekeeper, worker and execution service are one process, as in `duly dev`; the graph does nothing, under a grant.
"""

import asyncio
import math
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.arena import Arena
from duly.app.duly import Duly
from duly.application.telling import Nobody
from duly.bootstrap import Queue
from duly.domain.cadence import every
from duly.domain.sessions import ClaimedJob, Report
from duly.settings import Settings

TITLE = "executions"
HEADER = """
| a `python:` graph under a grant | slots | due to entered, p50 / p99 | due to recorded, p50 / p99 | goal for the p50 |
|---|---|---|---|---|"""
GOAL_MS = 15.0
SLOTS = 60

_WARM_UPS = 5
_SCHEDULE = "bench"


@dataclass(slots=True)
class _Stopwatch(Nobody):
    """Told of a run once it is committed, so what it notes is a durable end."""

    entered: list[int] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    queue: Queue | None = None
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: int = 0

    def now(self) -> int:
        assert self.queue is not None
        return self.queue.storage.clock.now()

    def exchanged(self, _: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        now = self.now()
        self.recorded += [now for _ in ended]
        if len(self.recorded) >= self.wanted:
            self.enough.set()


def measure(arena: Arena, store: str, slots: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder, arena.place(store, Path(folder)) as place:
        entered, recorded = asyncio.run(_watch(place, slots + _WARM_UPS))
    figures: dict[str, Any] = {"store": store, "slots": len(entered)}
    for name, late in (("entered", entered), ("recorded", recorded)):
        figures |= {f"{name}_p50_ms": statistics.median(late), f"{name}_p99_ms": late[math.ceil(len(late) * 0.99) - 1]}
    print(_line(figures), flush=True)
    return figures


async def _watch(place: str, slots: int) -> tuple[list[float], list[float]]:
    """One slot a second: each finds a system that has been idle since the one before."""
    watch = _Stopwatch(wanted=slots)
    app = Duly(place)

    async def graph(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002 - by this name it is given its input
        watch.entered.append(watch.now())
        return input

    app.graph(_SCHEDULE, graph, schedule=every("1s"), input={"n": 1})
    queue = watch.queue = await Queue.open(Settings(database_url=place), watch)
    try:
        await app.prepare(queue)
        worker = queue.worker(handlers=app.handlers, pools=await app.worker_pools(queue), name="bench")
        timekeeper = queue.timekeeper()
        parts = [asyncio.create_task(part.run()) for part in (timekeeper, worker)]
        waiting = asyncio.create_task(watch.enough.wait())
        await asyncio.wait([*parts, waiting], return_when=asyncio.FIRST_COMPLETED)
        for part in (timekeeper, worker):
            part.stop()
        await asyncio.gather(*parts)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    finally:
        await app.close()
        await queue.close()
    return _late(watch.entered[_WARM_UPS:slots]), _late(watch.recorded[_WARM_UPS:slots])


def _late(at: Sequence[int]) -> list[float]:
    """Slots are whole seconds, and no run here takes as long as one."""
    return sorted(instant % 1_000_000 / 1_000 for instant in at)


def _line(of: dict[str, Any]) -> str:
    reached = "reached" if of["recorded_p50_ms"] <= GOAL_MS else "missed"
    return (
        f"| {of['store']} | {of['slots']} | {of['entered_p50_ms']:.1f} / {of['entered_p99_ms']:.1f} ms | "
        f"{of['recorded_p50_ms']:.1f} / {of['recorded_p99_ms']:.1f} ms | {GOAL_MS:g} ms, {reached} |"
    )
