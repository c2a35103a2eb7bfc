"""Jobs in SQL: put, look, cancel, stage, prune."""

from collections.abc import Sequence

from duly.domain.errors import Unavailable
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import (
    FinishedJob,
    Job,
    JobAlreadyFinished,
    JobState,
    Put,
    PutOutcome,
    UnknownJob,
)
from duly.domain.pools import PoolDraining, PoolMode, UnknownPool
from duly.storage.executor import Executor
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.rows import finished_from_row, job_from_row, job_row, pool_from_row, resources_text
from duly.storage.sql.topics import CANCEL, DUE, pool_topic

_MOST_ROUNDS = 100


class SqlJobs:
    __slots__ = ("_lanes", "_x")

    def __init__(self, executor: Executor) -> None:
        self._x = executor
        self._lanes = Lanes(executor)

    async def put_if_free(self, jobs: Sequence[Job]) -> set[str]:
        return await self._insert(jobs, JobState.READY)

    async def put(self, jobs: Sequence[Job]) -> list[Put]:
        await self._check_resources(jobs)
        added = await self._insert(_first_of_each_key(jobs), JobState.READY)
        puts = {job.id: Put(job.id, PutOutcome.CREATED) for job in jobs if job.id in added}
        rest = [job for job in jobs if job.id not in added]
        for _ in range(_MOST_ROUNDS):
            if not rest:
                return [puts[job.id] for job in jobs]
            rest = await self._put_in_the_way(rest, puts)
        raise Unavailable(f"job {rest[0].id} keeps meeting others under its key; try again")

    async def _insert(self, jobs: Sequence[Job], in_lane: JobState) -> set[str]:
        """Adds those that nothing stands in the way of; a due job that has a lane enters it as `in_lane`."""
        rows = [job_row(job, _entry_state(job, in_lane)) for job in jobs]
        added = {row[0] for row in await self._x.each("insert_jobs", rows)}
        for pool, is_due in {(job.pool, job.run_at <= job.created_at) for job in jobs if job.id in added}:
            self._x.wake(pool_topic(pool) if is_due else DUE)
        return added

    async def _put_in_the_way(self, jobs: Sequence[Job], puts: dict[JobId, Put]) -> list[Job]:
        """Jobs that could not simply be added; answers those that must be tried once more."""
        known = {job.id for job in jobs if await self._x.fetch("is_known", id=job.id)}
        puts |= {job_id: Put(job_id, PutOutcome.CREATED) for job_id in known}
        unknown = [job for job in jobs if job.id not in known]
        await self._check_pools(unknown)
        joining: list[Job] = []
        for job in unknown:
            if job.key is None or (put := await self._put_over(job)) is None:
                joining.append(job)
            else:
                puts[job.id] = put
        added = await self._insert(_first_of_each_key(joining), JobState.WAITING)
        puts |= {job.id: Put(job.id, PutOutcome.CREATED) for job in joining if job.id in added}
        lanes = {job.lane for job in joining if job.id in added and job.lane and job.run_at <= job.created_at}
        if lanes:
            await self._lanes.join(lanes)
        return [job for job in joining if job.id not in added]

    async def _put_over(self, job: Job) -> Put | None:
        """An unlocked job with the same key is replaced, a locked one left alone; None if there is neither."""
        for row in await self._x.fetch("job_by_key_locked", key=job.key):
            standing = job_from_row(row)
            if standing.is_locked:
                return Put(standing.id, PutOutcome.LEFT)
            await self._replace(standing, job)
            return Put(standing.id, PutOutcome.REPLACED)
        return None

    async def _replace(self, standing: Job, job: Job) -> None:
        is_due = job.run_at <= job.created_at
        state = JobState.SCHEDULED if not is_due else JobState.WAITING if job.lane else JobState.READY
        await self._x.fetch(
            "replace_job",
            id=standing.id,
            kind=job.kind,
            payload=job.payload,
            lane=job.lane,
            pool=job.pool,
            resources=resources_text(job.resources),
            priority=job.priority,
            position=job.position,
            run_at=job.run_at,
            state=state.value,
            max_attempts=job.retry.max_attempts,
            backoff_ms=job.retry.backoff_ms,
            backoff_cap_ms=job.retry.backoff_cap_ms,
            timeout_ms=job.timeout_ms,
        )
        if standing.lane and standing.lane != job.lane:
            await self._lanes.leave([standing.lane])
        if job.lane and is_due:
            await self._lanes.join([job.lane])
        elif standing.lane and standing.lane == job.lane:
            await self._lanes.leave([standing.lane])
        self._x.wake(pool_topic(job.pool) if is_due else DUE)

    async def _check_resources(self, jobs: Sequence[Job]) -> None:
        for name in sorted({name for job in jobs for name in job.resources}):
            if not await self._x.fetch("pool_by_name", name=name):
                raise UnknownPool(name)

    async def _check_pools(self, jobs: Sequence[Job]) -> None:
        for name in sorted({job.pool for job in jobs}):
            rows = await self._x.fetch("pool_by_name", name=name)
            if not rows:
                raise UnknownPool(name)
            if pool_from_row(rows[0]).mode is PoolMode.DRAINING:
                raise PoolDraining(name)

    async def get(self, job_id: JobId) -> Job | FinishedJob | None:
        for row in await self._x.fetch("job_by_id", id=job_id):
            return job_from_row(row)
        for row in await self._x.fetch("finished_by_id", id=job_id):
            return finished_from_row(row)
        return None

    async def chain(self, job_id: JobId) -> list[Job | FinishedJob]:
        job = await self.get(job_id)
        if job is None:
            raise UnknownJob(job_id)
        ended = [finished_from_row(row) for row in await self._x.fetch("finished_chain", chain=job.chain)]
        live = [job_from_row(row) for row in await self._x.fetch("live_chain", chain=job.chain)]
        return [*ended, *live]

    async def upcoming(self, pool: PoolName, most: int) -> list[Job]:
        return [job_from_row(row) for row in await self._x.fetch("upcoming", pool=pool, most=most)]

    async def cancel(self, job_id: JobId, *, reason: str, now: Instant) -> bool:
        job = await self._locked(job_id)
        if job.is_locked:
            await self._x.fetch("request_cancel", id=job_id, reason=reason)
            self._x.wake(CANCEL)
            return False
        await self._x.fetch("record_withdrawn", id=job_id, reason=reason, now=now)
        await self._x.fetch("remove_job", id=job_id)
        if job.lane:
            await self._lanes.leave([job.lane])
        return True

    async def _locked(self, job_id: JobId) -> Job:
        for row in await self._x.fetch("job_by_id_locked", id=job_id):
            return job_from_row(row)
        if await self._x.fetch("finished_by_id", id=job_id):
            raise JobAlreadyFinished(job_id)
        raise UnknownJob(job_id)

    async def stage(self, now: Instant, most: int) -> Instant | None:
        due = await self._x.fetch("due", now=now, most=most)
        into_lanes = [(job_id, lane) for job_id, lane, _, state in due if lane and state == JobState.SCHEDULED]
        behind = {job_id for job_id, _ in into_lanes}
        alone = [(job_id,) for job_id, *_ in due if job_id not in behind]
        await self._x.each("set_state", alone, state=JobState.READY.value)
        await self._lanes.step_back(lane for _, lane, _, state in due if state == JobState.BACKOFF)
        if into_lanes:
            ids = [(job_id,) for job_id, _ in into_lanes]
            await self._x.each("set_state", ids, state=JobState.WAITING.value)
            await self._lanes.join(lane for _, lane in into_lanes)
        for pool in {pool for _, _, pool, _ in due}:
            self._x.wake(pool_topic(pool))
        rows = await self._x.fetch("next_due_at")
        return Instant(rows[0][0]) if rows[0][0] is not None else None

    async def prune(self, before: Instant, most: int) -> int:
        return len(await self._x.fetch("prune_finished", before=before, most=most))


def _first_of_each_key(jobs: Sequence[Job]) -> list[Job]:
    """A statement that adds many takes them in an order of its own; of two with one key the later must win."""
    keys: set[str] = set()
    first = []
    for job in jobs:
        if job.key is None or job.key not in keys:
            first.append(job)
        if job.key is not None:
            keys.add(job.key)
    return first


def _entry_state(job: Job, in_lane: JobState) -> JobState:
    if job.run_at > job.created_at:
        return JobState.SCHEDULED
    return in_lane if job.lane else JobState.READY
