"""Retries by hand in SQL."""

from duly.domain.errors import Unavailable
from duly.domain.ids import JobId, Owner
from duly.domain.jobs import ChainLive, FinishedJob, Job, JobState, KeyTaken, UnknownJob
from duly.domain.pools import PoolDraining, PoolMode, UnknownPool
from duly.ports.retries import FailedAsked
from duly.storage.executor import Executor
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.rows import PAST_EVERY_ID, finished_from_row, job_row, pool_from_row
from duly.storage.sql.topics import pool_topic

_MOST_ROUNDS = 10
_FIRST, _LAST = -(2**63), 2**63 - 1


class SqlRetries:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def by_key(self, chain: JobId, key: str) -> JobId | None:
        for (job_id,) in await self._x.fetch("retry_by_key", chain=chain, key=key):
            return JobId(job_id)
        return None

    async def lock_last(self, chain: JobId, *, asked: JobId) -> FinishedJob:
        for _ in range(_MOST_ROUNDS):
            rows = await self._x.fetch("last_of_chain", chain=chain)
            last = await self._x.fetch("finished_by_id_locked", id=rows[0][0]) if rows else []
            # In later statements: whoever had it locked may have added an attempt.
            for (live,) in await self._x.fetch("live_of_chain", chain=chain):
                raise ChainLive(asked, JobId(live))
            if not last:
                raise UnknownJob(asked)
            if (await self._x.fetch("last_of_chain", chain=chain))[0][0] == rows[0][0]:
                return finished_from_row(last[0])
        raise Unavailable(f"the chain of job {asked} keeps changing; try again")

    async def budget(self, last: FinishedJob) -> int:
        ((renewed_at,),) = await self._x.fetch("last_manual_retry", chain=last.chain)
        return last.max_attempts - (0 if renewed_at is None else int(renewed_at) - 1)

    async def execution_key(self, chain: JobId, attempt: int) -> str | None:
        for (key,) in await self._x.fetch("executed_anew_under", chain=chain, attempt=attempt):
            return str(key)
        return None

    async def add(self, job: Job, *, key: str | None, execution_key: str | None = None) -> None:
        await self._check_pools(job)
        state = JobState.WAITING if job.lane else JobState.READY
        if not await self._x.each("insert_jobs", [job_row(job, state)]):
            assert job.key is not None  # noqa: S101 - its id is new and its pool is held, so that is what was taken
            raise KeyTaken(job.retry_of or job.id, job.key)
        await self._x.fetch(
            "record_retry",
            job_id=job.id,
            chain=job.chain,
            key=key,
            attempt=job.attempt,
            now=job.created_at,
            execution_key=execution_key,
        )
        if job.lane:
            await Lanes(self._x).join([job.lane])
        self._x.wake(pool_topic(job.pool))

    async def _check_pools(self, job: Job) -> None:
        """A retry by hand is new work: a pool that drains takes none."""
        for name in sorted({job.pool, *job.resources}):
            rows = await self._x.fetch("hold_pool", name=name)
            if not rows:
                raise UnknownPool(name)
            if name == job.pool and pool_from_row(rows[0]).mode is PoolMode.DRAINING:
                raise PoolDraining(name)

    async def failed(
        self, owner: Owner | None, asked: FailedAsked, *, before: JobId | None, most: int
    ) -> list[FinishedJob]:
        values = {
            "pool": asked.pool,
            "kind": asked.kind,
            "since": _FIRST if asked.since is None else asked.since,
            "until": _LAST if asked.until is None else asked.until,
            "before": before or PAST_EVERY_ID,
            "most": most,
        }
        if owner is not None:
            rows = await self._x.fetch("failed_jobs_of_owner", owner=owner, **values)
        else:
            rows = await self._x.fetch("failed_jobs" if asked.pool is None else "failed_jobs_of_pool", **values)
        return [finished_from_row(row) for row in rows]
