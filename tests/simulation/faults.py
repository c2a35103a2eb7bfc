"""What can go wrong between a process and its store, drawn from one seed."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from duly.domain.errors import Unavailable
from duly.domain.instants import Micros
from duly.domain.jobs import Entry
from duly.ports.clock import Clock
from duly.ports.storage import Storage, Transaction, Work
from duly.ports.wakeups import Listener, Wakeups

T = TypeVar("T")


@dataclass(slots=True)
class Weather:
    """Chances of each fault at each step; heals to none."""

    crash: float = 0.0
    unavailable: float = 0.0
    answer_lost: float = 0.0
    rerun: float = 0.0
    hint_lost: float = 0.0
    slow: float = 0.0
    down: bool = False  # the store answers nobody


class Process:
    """A process of the simulated machine: it can be killed or suspended between any two steps."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self._tasks: set[asyncio.Task[None]] = set()
        self._going_on = asyncio.Event()
        self._going_on.set()

    def spawn(self, body: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(body)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def is_suspended(self) -> bool:
        return not self._going_on.is_set()

    def suspend(self) -> None:
        self._going_on.clear()

    def resume(self) -> None:
        self._going_on.set()

    async def go_on(self) -> None:
        """Returns at once, unless the process is suspended; never, if it is dead."""
        if not self._going_on.is_set():
            await self._going_on.wait()
        if not self.alive:
            raise asyncio.CancelledError

    def kill(self) -> None:
        """It takes nothing with it."""
        self.alive = False
        self._going_on.set()
        for task in self._tasks:
            task.cancel()


class FaultyStorage:
    """One process's view of the shared store."""

    def __init__(
        self,
        storage: Storage,
        process: Process,
        *,
        weather: Weather,
        random: Random,
        trace: Callable[[str], None],
        after_commit: Callable[[], None],
        slowest: int = 500_000,
    ) -> None:
        self._storage = storage
        self._process = process
        self._weather = weather
        self._random = random
        self._trace = trace
        self._after_commit = after_commit
        self._slowest = slowest
        self.clock: Clock = storage.clock
        self.wakeups: Wakeups = _LossyWakeups(storage.wakeups, weather, random)

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        await self._step("before commit")
        if self._weather.down or self._chance(self._weather.unavailable):
            raise Unavailable("the store cannot be reached")
        if self._chance(self._weather.rerun):
            await self._run_in_vain(work)
        answer = await self._storage.transact(work, single=single)
        self._after_commit()
        await self._step("after commit")
        if self._chance(self._weather.answer_lost):
            raise Unavailable("the answer was lost")
        return answer

    def put_at_once(self, entry: Entry) -> bool | None:
        """Nothing is awaited here: what has to wait, or cannot be reached, goes the way of a transaction."""
        if self._process.is_suspended or not self._process.alive or self._weather.down:
            return None
        if self._chance(self._weather.unavailable):
            raise Unavailable("the store cannot be reached")
        is_added = self._storage.put_at_once(entry)
        if is_added is None:
            return None
        self._trace(f"{self._process.name} put {entry.id} at once: {is_added}")
        self._after_commit()
        if self._chance(self._weather.crash):
            self._trace(f"{self._process.name} dies after its put")
            self._process.kill()
            raise asyncio.CancelledError
        if self._chance(self._weather.answer_lost):
            raise Unavailable("the answer was lost")
        return is_added

    async def read(self, work: Work[T]) -> T:
        await self._step("before read")
        if self._weather.down:
            raise Unavailable("the store cannot be reached")
        return await self._storage.read(work)

    async def close(self) -> None:
        return None

    async def _step(self, name: str) -> None:
        """A point where the process may die, or lose time to others."""
        await self._process.go_on()
        self._trace(f"{self._process.name} {name}")
        if self._chance(self._weather.crash):
            self._trace(f"{self._process.name} dies {name}")
            self._process.kill()
            await asyncio.Event().wait()
        if self._chance(self._weather.slow):
            await self.clock.sleep(Micros(self._random.randrange(1_000, self._slowest)))
            await self._process.go_on()

    async def _run_in_vain(self, work: Work[T]) -> None:
        """A serialization failure: everything the work wrote is undone, and it runs again."""

        async def fail(tx: Transaction) -> None:
            await work(tx)
            raise _Undone

        try:
            await self._storage.transact(fail)
        except _Undone:
            self._trace(f"{self._process.name} runs again")

    def _chance(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability


class _Undone(Exception):
    pass


class _LossyWakeups:
    def __init__(self, wakeups: Wakeups, weather: Weather, random: Random) -> None:
        self._wakeups = wakeups
        self._weather = weather
        self._random = random

    def announce(self, topics: frozenset[str]) -> None:
        self._wakeups.announce(topics)

    def listen(self) -> Listener:
        return _LossyListener(self._wakeups.listen(), self._weather, self._random)


class _LossyListener:
    def __init__(self, listener: Listener, weather: Weather, random: Random) -> None:
        self._listener = listener
        self._weather = weather
        self._random = random

    async def wait(self, at_most: Micros) -> frozenset[str]:
        topics = await self._listener.wait(at_most)
        lost = topics and self._random.random() < self._weather.hint_lost
        return frozenset() if lost else topics

    def close(self) -> None:
        self._listener.close()
