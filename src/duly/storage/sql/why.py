"""What whoever asks why wants to know, in SQL."""

from collections.abc import Mapping

from duly.domain.explanations import SeenSession
from duly.domain.ids import JobId, Lane, PoolName, RunId, SessionId
from duly.domain.instants import Instant
from duly.domain.jobs import Job
from duly.ports.why import Aside
from duly.storage.executor import Executor
from duly.storage.sql.rows import job_from_row


class SqlWhy:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def holders(self, pool: PoolName, most: int) -> list[Job]:
        return [job_from_row(row) for row in await self._x.fetch("holders_of_pool", pool=pool, most=most)]

    async def calls(self, pool: PoolName) -> int:
        ((count,),) = await self._x.fetch("calls_in_pool", pool=pool)
        return int(count)

    async def ahead(self, job: Job, most: int) -> tuple[int, list[Job]]:
        place = {"rank": job.rank, "position": job.position, "created_at": job.created_at, "id": job.id}
        ((count,),) = await self._x.fetch("count_ahead", pool=job.pool, **place)
        first = await self._x.fetch("first_ahead", pool=job.pool, most=most, **place) if count else []
        return int(count), [job_from_row(row) for row in first]

    async def head(self, lane: Lane) -> Job | None:
        for row in await self._x.fetch("head_of_lane", lane=lane):
            return job_from_row(row)
        return None

    async def ahead_in_lane(self, job: Job) -> int:
        place = {"rank": job.rank, "position": job.position, "created_at": job.created_at, "id": job.id}
        ((count,),) = await self._x.fetch("count_ahead_in_lane", lane=job.lane, **place)
        return int(count)

    async def aside(self, job_id: JobId) -> Aside:
        for row in await self._x.fetch("aside_of_job", id=job_id):
            return Aside(*row)
        return Aside()

    async def share_used(self, pool: PoolName, share: str) -> int:
        ((count,),) = await self._x.fetch("share_used", pool=pool, share=share)
        return int(count)

    async def session(self, session: SessionId) -> SeenSession | None:
        for session_id, name, seen_at in await self._x.fetch("seen_session", id=session):
            return SeenSession(id=session_id, name=name, seen_at=seen_at)
        return None

    async def asked_by_hand(self, chain: JobId) -> Mapping[JobId, Instant]:
        return dict(await self._x.fetch("asked_by_hand", chain=chain))

    async def accepted_at(self, run_id: str) -> Instant | None:
        for (accepted_at,) in await self._x.fetch("accepted_at", run_id=run_id):
            return None if accepted_at is None else Instant(accepted_at)
        return None

    async def run_of_execution(self, execution: str) -> RunId | None:
        for (run_id,) in await self._x.fetch("run_of_execution", execution=execution):
            return RunId(run_id)
        return None
