"""One store, a clock that a test moves, and short words for what workers and callers do."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypeVar

import asyncpg

from duly.application.audit import Audit
from duly.bootstrap import Queue
from duly.domain.audit import Law
from duly.domain.billing import FreeModels
from duly.domain.ids import JobId, JobKey, Lane, PoolName, SessionId, Token
from duly.domain.instants import Micros
from duly.domain.jobs import COMPLETED, Ending, Entry, FinishedJob, Job, JobStatus, NewJob, Put
from duly.domain.pools import DEFAULT_POOL, Pool
from duly.domain.sessions import LEASE, ClaimedJob, Exchange, Report, Wanted
from duly.ports.clock import Clock
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Work
from duly.ports.wakeups import Wakeups
from duly.settings import Settings
from duly.storage.postgres.storage import PostgresStorage
from duly.storage.sqlite.storage import SqliteStorage
from duly.system.dice import SystemDice
from tests.contracts.clocks import SettableClock
from tests.contracts.laws import broken_laws

T = TypeVar("T")

WIDE = PoolName("wide")
FREE = FreeModels(beginnings=("ollama:",))
FAILED = Ending(status=JobStatus.FAILED, error="as asked")


class ClockedStorage:
    """A storage under another clock: use cases read the time from nowhere else."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self.inner = storage
        self.clock = clock

    @property
    def wakeups(self) -> Wakeups:
        return self.inner.wakeups

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        return await self.inner.transact(work, single=single)

    def put_at_once(self, entry: Entry) -> bool | None:
        return self.inner.put_at_once(entry)

    async def read(self, work: Work[T]) -> T:
        return await self.inner.read(work)

    async def close(self) -> None:
        await self.inner.close()


class Hand:
    """A worker's session, as far as the store knows it."""

    def __init__(self, queue: Queue, session: SessionId) -> None:
        self.queue = queue
        self.session = session
        self.token = 0

    async def exchange(
        self,
        *,
        reports: Sequence[Report] = (),
        starting: Sequence[ClaimedJob] = (),
        wanted: Mapping[PoolName, Wanted] | None = None,
        again: bool = False,
    ) -> Exchange:
        """`again` repeats the last one, whose answer was lost."""
        self.token += 0 if again else 1
        return await self.queue.sessions.exchange(
            self.session,
            token=Token(self.token),
            reports=reports,
            starting=starting,
            wanted=wanted or {},
            again=again,
        )

    async def claim(self, count: int = 1, pool: PoolName = WIDE) -> list[ClaimedJob]:
        return list((await self.exchange(wanted={pool: Wanted(count)})).started)

    async def hold(self, count: int = 1, pool: PoolName = WIDE) -> list[ClaimedJob]:
        return list((await self.exchange(wanted={pool: Wanted(0, count)})).held)

    async def finish(self, *jobs: ClaimedJob, ending: Ending = COMPLETED) -> Exchange:
        return await self.exchange(reports=[Report(job, ending) for job in jobs])

    async def fail(self, *jobs: ClaimedJob) -> Exchange:
        return await self.finish(*jobs, ending=FAILED)

    async def work_off(self, pool: PoolName = WIDE) -> list[str]:
        """Runs everything that is ready, one by one; answers the kinds in the order in which they ran."""
        kinds = []
        while claimed := await self.claim(1, pool):
            kinds.append(claimed[0].kind)
            await self.finish(*claimed)
        return kinds


class World:
    """Opened in the event loop of one test; `another` is a second process on the same store."""

    def __init__(self, store: str, place: str) -> None:
        self.store = store
        self.place = place
        self.clock = SettableClock()
        self.dice: Dice = SystemDice()
        self.is_audited = False
        self._queues: list[Queue] = []
        self._witness: asyncpg.Connection | None = None

    async def open(self) -> None:
        self.queue = await self.another()
        await self.pool(WIDE, 1_000)

    async def another(self) -> Queue:
        settings = Settings(database_url=self.place, free_models=FREE)
        queue = Queue.on(await self._opened(), self.dice, settings)
        self._queues.append(queue)
        return queue

    async def _opened(self) -> Storage:
        if self.store == "sqlite":
            return await SqliteStorage.open(self.place, clock=self.clock)
        storage = await PostgresStorage.open(self.place, migrate=False, listening=False)
        return ClockedStorage(storage, self.clock)

    async def reopen(self) -> None:
        await self.close()
        self.queue = await self.another()

    async def close(self) -> None:
        while self._queues:
            await self._queues.pop().close()
        if self._witness is not None:
            await self._witness.close()
            self._witness = None

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Straight from the tables, past everything that is tested."""
        if self.store == "postgres":
            if self._witness is None:
                self._witness = await asyncpg.connect(self.place)
            return [tuple(row) for row in await self._witness.fetch(sql)]
        storage: Any = self._queues[0].storage
        with storage._writer.mutex:
            if "jobs" in sql:
                storage._writer._committer.absorb()
            return list(storage._connection.execute(sql).fetchall())

    async def transact(self, work: Work[T]) -> T:
        return await self.queue.storage.transact(work)

    async def keeps_the_laws(self) -> None:
        broken = await broken_laws(self.rows)
        if self.is_audited:
            broken += [text async for text in self._findings()]
        assert not broken, "\n".join(broken)

    async def _findings(self) -> AsyncIterator[str]:
        """Apart from what is stuck: hands are tests' own, and may stop where they like."""
        async for verdict in Audit(storage=self.queue.storage).verdicts():
            for finding in verdict.findings.kept:
                if finding.law is not Law.STUCK:
                    yield f"{verdict.schedule.id}: {finding}"

    # What callers do.

    async def put(
        self,
        kind: str = "work",
        *,
        key: str | None = None,
        lane: str | None = None,
        pool: str = WIDE,
        resources: Sequence[str] = (),
        **rest: Any,
    ) -> JobId:
        return (await self.puts(kind, key=key, lane=lane, pool=pool, resources=resources, **rest)).job_id

    async def puts(self, kind: str = "work", **given: Any) -> Put:
        return await self.queue.jobs.put(new(kind, **given))

    async def pool(self, name: str, slots: int, **rest: Any) -> Pool:
        return await self.queue.pools.define(Pool(name=PoolName(name), slots=slots, **rest))

    async def hand(self, capacity: int = 1_000, *, queue: Queue | None = None, lease: Micros = LEASE) -> Hand:
        queue = queue or self.queue
        session = await queue.sessions.open(name="hand", capacity=capacity, lease=lease)
        return Hand(queue, session.id)

    # What a test looks at.

    async def live(self, job_id: JobId) -> Job:
        job = await self.queue.jobs.get(job_id)
        assert isinstance(job, Job), f"{job_id} has ended"
        return job

    async def ended(self, job_id: JobId) -> FinishedJob:
        job = await self.queue.jobs.get(job_id)
        assert isinstance(job, FinishedJob), f"{job_id} is {job.state}"
        return job

    async def state(self, job_id: JobId) -> str:
        job = await self.queue.jobs.get(job_id)
        return str(job.state if isinstance(job, Job) else job.status)

    async def kinds(self, pool: PoolName = WIDE) -> list[str]:
        """What is ready, in order."""
        return [job.kind for job in await self.queue.jobs.upcoming(pool, most=10_000)]

    async def used(self, pool: PoolName = WIDE) -> int:
        return (await self.queue.pools.get(pool)).used

    async def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table, to compare."""
        tables = ("pools", "sessions", "jobs", "finished_jobs", "tickets")
        return {table: await self.rows(f"SELECT * FROM {table} ORDER BY 1") for table in tables}


def new(
    kind: str = "work",
    *,
    key: str | None = None,
    lane: str | None = None,
    pool: str = WIDE,
    resources: Sequence[str] = (),
    **rest: Any,
) -> NewJob:
    return NewJob(
        kind=kind,
        key=None if key is None else JobKey(key),
        lane=None if lane is None else Lane(lane),
        pool=PoolName(pool),
        resources=tuple(PoolName(name) for name in resources),
        **rest,
    )


__all__ = ["DEFAULT_POOL", "FAILED", "WIDE", "Hand", "World", "new"]
