"""Places in SQL: moves are rare, so the pool's row is locked and the order stands still while one is made."""

from collections.abc import Sequence

from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import Job, JobAlreadyFinished, JobLocked, UnknownJob
from duly.storage.executor import Executor
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.rows import job_from_row
from duly.storage.sql.topics import pool_topic


class SqlOrder:
    __slots__ = ("_lanes", "_x")

    def __init__(self, executor: Executor) -> None:
        self._x = executor
        self._lanes = Lanes(executor)

    async def lock(self, job_id: JobId) -> Job:
        for row in await self._x.fetch("job_by_id", id=job_id):
            await self._x.fetch("lock_pool", name=job_from_row(row).pool)
        for row in await self._x.fetch("job_by_id_locked", id=job_id):
            job = job_from_row(row)
            if job.is_locked:
                raise JobLocked(job_id)
            return job
        if await self._x.fetch("finished_by_id", id=job_id):
            raise JobAlreadyFinished(job_id)
        raise UnknownJob(job_id)

    async def first(self, pool: PoolName, *, apart_from: JobId) -> Job | None:
        for row in await self._x.fetch("first_in_pool", pool=pool, apart_from=apart_from):
            return job_from_row(row)
        return None

    async def before(self, job: Job, *, apart_from: JobId, most: int) -> list[tuple[JobId, int]]:
        rows = await self._x.fetch("neighbours_before", **_place(job), apart_from=apart_from, most=most)
        return [(job_id, position) for job_id, position in rows]

    async def after(self, job: Job, *, apart_from: JobId) -> Job | None:
        for row in await self._x.fetch("neighbour_after", **_place(job), apart_from=apart_from):
            return job_from_row(row)
        return None

    async def shares_its_place(self, job: Job) -> bool:
        rows = await self._x.fetch(
            "neighbour_beside", pool=job.pool, rank=job.rank, position=job.position, apart_from=job.id
        )
        return bool(rows)

    async def place(self, job: Job, *, priority: int, rank: int, position: int) -> None:
        await self._x.fetch("place", id=job.id, priority=priority, rank=rank, position=position)
        await self._settle(job)

    async def reprioritise(self, job: Job, priority: int) -> None:
        await self._x.fetch("reprioritise", id=job.id, priority=priority)
        await self._settle(job)

    async def renumber(self, positions: Sequence[tuple[JobId, int]]) -> None:
        await self._x.each("set_position", list(positions))

    async def _settle(self, job: Job) -> None:
        if job.lane:
            await self._lanes.reorder([job.lane])
        self._x.wake(pool_topic(job.pool))


def _place(job: Job) -> dict[str, str | int]:
    return {
        "pool": job.pool,
        "rank": job.rank,
        "position": job.position,
        "created_at": job.created_at,
        "id": job.id,
    }
