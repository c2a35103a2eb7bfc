"""pgqueuer on asyncpg."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import asyncpg
import uvloop
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.contender import Contender, Duty, Pace, enqueue_async, fill_async, ping_async
from bench.tally import Tally

T = TypeVar("T")


class PgqueuerQueue(Contender):
    """Batches of 1,000 and the autovacuum settings of `pgq autovac`, as its documentation advises for throughput."""

    packages = ("pgqueuer", "asyncpg", "uvloop")
    settings = "durable tables, batch_size=1000, its autovacuum settings, worker on uvloop as its CLI runs it"
    unfinished = "SELECT EXISTS (SELECT 1 FROM pgqueuer)"

    def set_up(self, place: str) -> None:
        async def install(queries: Queries) -> None:
            await queries.install()
            await queries.optimize_autovacuum()

        _with_queries(place, 1, install)

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        return _with_queries(place, callers, lambda q: enqueue_async(_putter(q), callers, seconds))

    def fill(self, place: str, jobs: int) -> Pace:
        async def fill(queries: Queries) -> Pace:
            def put_many(numbers: range) -> Awaitable[object]:
                payloads: list[bytes | None] = [_payload(n) for n in numbers]
                return queries.enqueue(["noop"] * len(numbers), payloads, [0] * len(numbers))

            return await fill_async(put_many, jobs)

        return _with_queries(place, 1, fill)

    def work(self, place: str, duty: Duty) -> None:
        async def main() -> None:
            manager = QueueManager(Queries.from_asyncpg_connection(await asyncpg.connect(place)))

            @manager.entrypoint("noop")
            async def noop(job: Job) -> None:
                duty.enter(json.loads(job.payload or b"")["n"] if duty.stamping else 0)

            await manager.run(batch_size=1_000, dequeue_timeout=timedelta(seconds=30))

        uvloop.run(main())

    def ping(self, place: str, tally: Tally, count: int) -> None:
        _with_queries(place, 1, lambda q: ping_async(_putter(q), tally, count))


def _putter(queries: Queries) -> Callable[[int], Awaitable[object]]:
    return lambda n: queries.enqueue("noop", _payload(n))


def _payload(number: int) -> bytes:
    return json.dumps({"n": number}).encode()


def _with_queries(place: str, connections: int, use: Callable[[Queries], Awaitable[T]]) -> T:
    """One connection for one caller, a pool for more: whichever is faster for it."""

    async def main() -> T:
        if connections == 1:
            return await use(Queries.from_asyncpg_connection(await asyncpg.connect(place)))
        async with asyncpg.create_pool(place, min_size=connections, max_size=connections) as pool:
            return await use(Queries.from_asyncpg_pool(pool))

    return asyncio.run(main())
