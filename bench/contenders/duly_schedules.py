"""Duly's schedules: one process keeps time and works, as it comes."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bench.contender import Duty, Scheduler
from bench.contenders.duly_queue import with_queue
from bench.seeds import copy_schedule
from duly.bootstrap import Queue
from duly.domain.cadence import cron
from duly.domain.ids import PoolName
from duly.domain.payloads import value_of
from duly.domain.pools import Pool
from duly.domain.schedules import Target
from duly.domain.sessions import ClaimedJob

_POOL = PoolName("bench")
_CALLERS = 64


class DulySchedules(Scheduler):
    packages = ("duly", "apsw", "asyncpg")
    settings = (
        "daily cron, default policies (overlap skip: a lane per schedule), a key and a ledger row per slot, pool limit "
        "10,000, concurrency 1,000, timekeeper and worker in one process"
    )

    def plan(self, place: str, due_at: Sequence[int]) -> None:
        async def create_all(queue: Queue) -> None:
            await queue.pools.define(Pool(name=_POOL, slots=10_000))
            to_create = enumerate(due_at)
            await asyncio.gather(*(_create(queue, to_create) for _ in range(_CALLERS)))

        with_queue(place, create_all)

    def keep(self, place: str, duty: Duty) -> None:
        def stamp(job: ClaimedJob) -> None:
            duty.enter(value_of(job.payload)["n"])

        async def run(queue: Queue) -> None:
            worker = queue.worker(handlers={"stamp": stamp}, pools={_POOL: 1_000}, name="bench")
            await asyncio.gather(queue.timekeeper().run(), worker.run())

        with_queue(place, run)


class DulyTimekeeper(DulySchedules):
    """Nobody works: what is opened stays where it was put. All schedules but the first are copies of it."""

    settings = "daily cron, default policies, a lane and a key per job, a ledger row per slot; a timekeeper, no worker"

    def plan(self, place: str, due_at: Sequence[int]) -> None:
        super().plan(place, due_at[:1])
        copy_schedule(place, "s-0", len(due_at) - 1)

    def keep(self, place: str, _: Duty) -> None:
        with_queue(place, lambda queue: queue.timekeeper().run())


async def _create(queue: Queue, to_create: Iterator[tuple[int, int]]) -> None:
    for number, due_at in to_create:
        cadence = cron(f"{datetime.fromtimestamp(due_at, UTC):%S %M %H} * * *")
        target = Target(kind="stamp", params={"n": number}, pool=_POOL)
        await queue.schedules.create(schedule_id=f"s-{number}", owner="bench", cadence=cadence, target=target)
