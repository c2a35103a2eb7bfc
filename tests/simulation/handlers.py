"""What workers of a simulated machine do: work for a while, fail now and then, and note when they came and left."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from duly.domain.jobs import Ending, JobStatus
from duly.domain.sessions import ClaimedJob
from duly.worker.handlers import DoNotRetry
from tests.simulation.faults import Process
from tests.simulation.laws import Entry, Journal
from tests.simulation.virtual_time import VirtualClock


class Surroundings(Protocol):
    random: Random
    clock: VirtualClock
    journal: Journal
    is_storming: bool

    def note(self, text: str) -> None: ...

    async def rest(self, seconds: float) -> None: ...


class Handlers:
    """Those of one process."""

    def __init__(self, world: Surroundings, process: Process) -> None:
        self._world = world
        self._process = process

    def by_kind(self) -> Mapping[str, Callable[[ClaimedJob], object]]:
        return {"plain": self._plain, "slow": self._slow, "stubborn": self._stubborn}

    def _plain(self, job: ClaimedJob) -> object:
        self._leave(self._enter(job))
        return self._answer()

    async def _slow(self, job: ClaimedJob) -> object:
        entry = self._enter(job)
        try:
            await self._work()
            return self._answer()
        finally:
            self._leave(entry)

    async def _stubborn(self, job: ClaimedJob) -> object:
        """Goes on for a while when it is asked to stop."""
        entry = self._enter(job)
        try:
            await self._work()
            return self._answer()
        except asyncio.CancelledError:
            if self._process.alive:
                await self._work()
            raise
        finally:
            self._leave(entry)

    async def _work(self) -> None:
        """Quickly once all is well, so that even the longest queue comes to its end."""
        await self._world.rest(self._world.random.choice([0.1, 1, 5, 20, 50]) if self._world.is_storming else 0.1)
        await self._process.go_on()

    def _enter(self, job: ClaimedJob) -> Entry:
        self._world.note(f"{self._process.name} enters {job.id}")
        entry = Entry(
            process=self._process.name,
            job=job.id,
            chain=job.chain,
            lane=job.lane,
            pool=job.pool,
            token=job.token,
            entered_at=self._world.clock.elapsed(),
        )
        self._world.journal.entries.append(entry)
        return entry

    def _leave(self, entry: Entry) -> None:
        entry.left_at = self._world.clock.elapsed()

    def _answer(self) -> object:
        match self._world.random.randrange(8):
            case 0:
                raise ValueError("bad luck")
            case 1:
                raise DoNotRetry("no use")
            case 2:
                return Ending(status=JobStatus.SKIPPED, error="not today")
            case _:
                return None
