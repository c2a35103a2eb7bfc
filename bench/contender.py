"""What every contender can do, and the loops that drive them all alike."""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from bench.tally import Tally

BULK = 1_000
# So that logs have grown to the size they keep, and buffers are filled: what is measured goes on like that.
_WARM_UP = 2_000


@dataclass(frozen=True)
class Pace:
    jobs: int
    seconds: float


@dataclass(frozen=True)
class Duty:
    """What a worker process is to do: count the jobs it enters, or stamp the numbers they carry."""

    tally: Tally
    worker: int
    stamping: bool = False
    stroke: Callable[[], None] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stroke", self.tally.stroke(self.worker))

    def enter(self, number: int) -> None:
        if self.stamping:
            self.tally.stamp_entry(number)
        else:
            self.stroke()


class Contender(Protocol):
    """A queue under test. Every method runs in a process of its own, on a place that `set_up` has prepared."""

    packages: ClassVar[tuple[str, ...]]
    settings: ClassVar[str]
    # Answers whether any job is not durably done.
    unfinished: ClassVar[str]

    def set_up(self, place: str) -> None: ...

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        """Each caller puts one job after another."""

    def fill(self, place: str, jobs: int) -> Pace:
        """One caller puts `BULK` jobs at a time, by the contender's own way for many."""

    def work(self, place: str, duty: Duty) -> None:
        """Works until it is killed."""

    def ping(self, place: str, tally: Tally, count: int) -> None:
        """Puts one job at a time into an idle system whose worker stamps it."""


class Scheduler(Protocol):
    """A scheduler under test, on a place that `plan` prepares."""

    packages: ClassVar[tuple[str, ...]]
    settings: ClassVar[str]

    def plan(self, place: str, due_at: Sequence[int]) -> None:
        """Daily schedules, numbered, and when each fires for the first time, in seconds of UTC."""

    def keep(self, place: str, duty: Duty) -> None:
        """Keeps time, and runs what is due, until it is killed."""


async def enqueue_async(put: Callable[[int], Awaitable[object]], callers: int, seconds: float) -> Pace:
    for number in range(_WARM_UP):
        await put(number)
    until = time.perf_counter() + seconds

    async def caller(first: int) -> int:
        number = first
        while time.perf_counter() < until:
            await put(number)
            number += callers
        return (number - first) // callers

    began = time.perf_counter()
    jobs = sum(await asyncio.gather(*(caller(_WARM_UP + n) for n in range(callers))))
    return Pace(jobs, time.perf_counter() - began)


def enqueue_in_threads(put: Callable[[int], object], callers: int, seconds: float) -> Pace:
    for number in range(_WARM_UP):
        put(number)
    done = [0] * callers
    until = time.perf_counter() + seconds

    def caller(index: int) -> None:
        while time.perf_counter() < until:
            put(_WARM_UP + index + callers * done[index])
            done[index] += 1

    began = time.perf_counter()
    if callers == 1:
        caller(0)
    else:
        threads = [threading.Thread(target=caller, args=(index,)) for index in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return Pace(sum(done), time.perf_counter() - began)


async def fill_async(put_many: Callable[[range], Awaitable[object]], jobs: int) -> Pace:
    began = time.perf_counter()
    for first in range(0, jobs, BULK):
        await put_many(range(first, min(first + BULK, jobs)))
    return Pace(jobs, time.perf_counter() - began)


def fill_in_turn(put: Callable[[int], object], jobs: int) -> Pace:
    """For contenders that know no way but one by one."""
    began = time.perf_counter()
    for number in range(jobs):
        put(number)
    return Pace(jobs, time.perf_counter() - began)


async def ping_async(put: Callable[[int], Awaitable[object]], tally: Tally, count: int) -> None:
    for number in range(count):
        await asyncio.sleep(_idle_for())
        tally.stamp_put(number)
        await put(number)
        while tally.pickup_ns(number) is None:  # noqa: ASYNC110 - another process stamps it
            await asyncio.sleep(0.002)


def ping_in_turn(put: Callable[[int], object], tally: Tally, count: int) -> None:
    for number in range(count):
        time.sleep(_idle_for())
        tally.stamp_put(number)
        put(number)
        while tally.pickup_ns(number) is None:
            time.sleep(0.002)


def _idle_for() -> float:
    # Uneven, so that no contender's poll falls into step with it.
    return random.uniform(0.02, 0.12)
