"""A page of ended jobs, from the index that the question has."""

from collections.abc import Sequence

from duly.domain.ids import Owner, PoolName
from duly.domain.jobs import JobStatus
from duly.storage.executor import Executor, Row

_ENDED = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.SKIPPED, JobStatus.CANCELLED)


async def ended_jobs(
    x: Executor, owner: Owner | None, pool: PoolName | None, status: JobStatus | None, *, before: str, most: int
) -> Sequence[Row]:
    if owner is not None:
        return await _of_owner(x, owner, pool, status, before=before, most=most)
    asked = {"pool": pool, "status": status and status.value, "before": before, "most": most}
    if status in {None, JobStatus.COMPLETED}:
        return await x.fetch("ended_jobs", **asked)
    if pool is not None:
        return await x.fetch("ended_jobs_aside_of_pool", **asked)
    del asked["pool"]
    return await x.fetch("ended_jobs_aside", **asked)


async def _of_owner(
    x: Executor, owner: Owner, pool: PoolName | None, status: JobStatus | None, *, before: str, most: int
) -> Sequence[Row]:
    found: list[Row] = []
    for each in _ENDED if status is None else (status,):
        found += await x.fetch(
            "ended_jobs_of_owner", owner=owner, pool=pool, status=each.value, before=before, most=most
        )
    # Each in order of ids already; together they are the newest of all.
    return sorted(found, key=lambda row: str(row[0]), reverse=True)[:most]
