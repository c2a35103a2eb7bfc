"""Duly itself, through the same front as everyone's: `Queue`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeVar

from bench.contender import Contender, Duty, Pace, enqueue_async, fill_async, ping_async
from bench.tally import Tally
from duly.bootstrap import Queue
from duly.domain.ids import Lane, PoolName
from duly.domain.jobs import NewJob
from duly.domain.payloads import value_of
from duly.domain.pools import Pool
from duly.domain.sessions import ClaimedJob
from duly.settings import Settings

T = TypeVar("T")

_POOL = PoolName("bench")
_DEFAULT = PoolName("default")


class DulyQueue(Contender):
    """Bench profile: a lane per job, a pool of 10,000, 500 executors. Default profile: the pool `default`, of 1."""

    packages = ("duly", "apsw", "asyncpg")
    settings = "lane per job, pool limit 10,000, concurrency 500, history kept"
    unfinished = "SELECT EXISTS (SELECT 1 FROM jobs)"
    pool: ClassVar[PoolName] = _POOL

    def set_up(self, place: str) -> None:
        async def define(queue: Queue) -> None:
            await queue.pools.define(Pool(name=_POOL, slots=10_000))

        with_queue(place, define)

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        return with_queue(place, lambda q: enqueue_async(lambda n: q.jobs.put(self._job(n)), callers, seconds))

    def fill(self, place: str, jobs: int) -> Pace:
        return with_queue(place, lambda q: fill_async(lambda ns: q.jobs.put_many([self._job(n) for n in ns]), jobs))

    def work(self, place: str, duty: Duty) -> None:
        def stamp(job: ClaimedJob) -> None:
            duty.tally.stamp_entry(value_of(job.payload)["n"])

        def count(_: ClaimedJob) -> None:
            stroke()

        stroke = duty.stroke
        handlers = {"noop": stamp if duty.stamping else count}
        pools = {self.pool: 1 if self.pool == _DEFAULT else 500}
        with_queue(place, lambda q: q.worker(handlers=handlers, pools=pools, name=f"bench-{duty.worker}").run())

    def ping(self, place: str, tally: Tally, count: int) -> None:
        with_queue(place, lambda q: ping_async(lambda n: q.jobs.put(self._job(n)), tally, count))

    def _job(self, number: int) -> NewJob:
        return NewJob(kind="noop", params={"n": number}, lane=Lane(f"lane-{number}"), pool=self.pool)


class DulyPlain(DulyQueue):
    settings = "jobs without lanes, as the peers' have none; pool limit 10,000, history kept"

    def _job(self, number: int) -> NewJob:
        return NewJob(kind="noop", params={"n": number}, pool=self.pool)

    def fill(self, place: str, jobs: int) -> Pace:
        alike = NewJob(kind="noop", pool=self.pool)
        return with_queue(place, lambda q: fill_async(lambda ns: q.jobs.put_alike(alike, [{"n": n} for n in ns]), jobs))


class DulyByDefault(DulyQueue):
    settings = "pool default of limit 1, no prefetch, history kept"
    pool = _DEFAULT


def with_queue(place: str, use: Callable[[Queue], Awaitable[T]]) -> T:
    async def main() -> T:
        queue = await Queue.open(Settings(database_url=place))
        try:
            return await use(queue)
        finally:
            await queue.close()

    return asyncio.run(main())
