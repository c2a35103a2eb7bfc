"""A queue in memory or in a file, its worker, and jobs to hand to a handler without either."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from duly.bootstrap import Queue, Settings
from duly.domain.ids import JobId, JobKey, PoolName, RunId, Token
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import FinishedJob, JobState, NewJob
from duly.domain.payloads import payload_of
from duly.domain.pools import Pool
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import ClaimedJob
from duly.worker.handlers import Handler
from duly.worker.worker import Worker

POOL = PoolName("wide")
SHORT = Micros(SECOND // 5)


def claimed(
    *, timeout_ms: int | None = None, key: str | None = None, ledger_run: str | None = None, **params: Any
) -> ClaimedJob:
    return ClaimedJob(
        id=JobId("job-2"),
        kind="work",
        payload=payload_of(params, field="params"),
        key=None if key is None else JobKey(key),
        lane=None,
        pool=POOL,
        resources=None,
        attempt=2,
        max_attempts=3,
        run_at=Instant(0),
        created_at=Instant(0),
        timeout_ms=timeout_ms,
        chain=JobId("job-1"),
        token=Token(1),
        state=JobState.RUNNING,
        rank=0,
        position=0,
        ledger_run=None if ledger_run is None else RunId(ledger_run),
    )


@asynccontextmanager
async def working(
    handlers: Mapping[str, Handler], *, database_url: str = ":memory:", executors: int = 1, **given: Any
) -> AsyncIterator[tuple[Queue, Worker]]:
    queue = await Queue.open(Settings(database_url=database_url))
    await queue.pools.define(Pool(name=POOL, slots=100))
    worker = Worker(
        jobs=queue.jobs,
        sessions=queue.sessions,
        handlers=handlers,
        pools={POOL: executors},
        name="w",
        **({"patience": SHORT, "grace": SHORT} | given),
    )
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(40):
            yield queue, worker
    finally:
        worker.stop()
        async with asyncio.timeout(20):
            await running
        await queue.close()


async def put(queue: Queue, kind: str, **given: Any) -> JobId:
    return (await queue.jobs.put(NewJob(kind=kind, pool=POOL, **({"retry": NO_RETRY} | given)))).job_id


async def ended(queue: Queue, job_id: JobId) -> FinishedJob:
    while True:
        job = await queue.jobs.get(job_id)
        if isinstance(job, FinishedJob):
            return job
        await asyncio.sleep(0.01)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - whatever it is, it rings no bell
            await asyncio.sleep(0.01)


def dies(pid: int) -> bool:
    """Whoever was sent SIGKILL does nothing more, but may take a moment to be gone; a dead one need not be buried."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
