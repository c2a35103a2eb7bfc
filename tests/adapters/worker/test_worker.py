"""Real workers on a SQLite file, in the moments in which a hint, a lease or a store goes missing.

Where a hint must come in time, the lease is so long that no heartbeat can make up for a lost one.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from duly.application.jobs import Jobs
from duly.bootstrap import Queue, Settings
from duly.domain.errors import Unavailable
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import FinishedJob, Job, NewJob
from duly.domain.pools import Pool
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import ClaimedJob
from duly.storage.sqlite.batch import Committer
from duly.storage.sqlite.storage import SqliteStorage
from duly.worker.handlers import Handler
from duly.worker.worker import Worker

pytestmark = pytest.mark.store("sqlite")

POOL = PoolName("wide")
RESOURCE = PoolName("resource")
LONG_LEASE_MS = 300_000
SHORT_LEASE_MS = 600


@asynccontextmanager
async def _working(
    path: Path, handlers: Mapping[str, Handler], *, lease_ms: int, prefetch: int = 0
) -> AsyncIterator[Queue]:
    """A queue and its worker of one executor."""
    queue = await Queue.open(Settings(database_url=str(path / "t.db"), lease_ms=lease_ms))
    await queue.pools.define(Pool(name=POOL, slots=4))
    worker = queue.worker(handlers=handlers, pools={POOL: 1}, name="w", prefetch={POOL: prefetch})
    working = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(20):
            yield queue
    finally:
        worker.stop()
        async with asyncio.timeout(20):
            await working
        await queue.close()


async def _quiet() -> None:
    """The first beat is a change to be noticed, which would make up for a lost hint; the backstop looks each second."""
    await asyncio.sleep(1.6)


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():  # noqa: ASYNC110 - the fact is a row of the database, which rings no bell
        await asyncio.sleep(0.01)


async def _is(queue: Queue, job_id: JobId, state: str) -> bool:
    job = await queue.jobs.get(job_id)
    return isinstance(job, Job) and job.state == state


async def _has_ended(queue: Queue, job_id: JobId) -> bool:
    return isinstance(await queue.jobs.get(job_id), FinishedJob)


def test_jobs_that_lack_a_resource_do_not_keep_an_executor_from_the_rest(tmp_path: Path) -> None:
    async def scenario() -> None:
        ran = asyncio.Event()
        async with _working(tmp_path, {"work": lambda _: ran.set()}, lease_ms=LONG_LEASE_MS) as queue:
            await queue.pools.define(Pool(name=RESOURCE, slots=0))
            await _quiet()

            better = [NewJob(kind="work", pool=POOL, resources=(RESOURCE,), priority=1) for _ in range(60)]
            await queue.jobs.put_many([*better, NewJob(kind="work", pool=POOL)])

            await ran.wait()

    asyncio.run(scenario())


def test_a_held_job_that_has_to_be_parked_leaves_its_executor_to_the_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        may_end = asyncio.Event()

        async def first(_: ClaimedJob) -> None:
            await may_end.wait()

        handlers: dict[str, Handler] = {"first": first, "work": lambda _: None}
        async with _working(tmp_path, handlers, lease_ms=LONG_LEASE_MS, prefetch=1) as queue:
            await queue.pools.define(Pool(name=RESOURCE, slots=1))
            await _quiet()
            running = (await queue.jobs.put(NewJob(kind="first", pool=POOL))).job_id
            await _until(lambda: _is(queue, running, "running"))
            held = (await queue.jobs.put(NewJob(kind="work", pool=POOL, resources=(RESOURCE,)))).job_id
            await _until(lambda: _is(queue, held, "claimed"))
            await queue.pools.pause(RESOURCE)
            behind = (await queue.jobs.put(NewJob(kind="work", pool=POOL))).job_id
            await asyncio.sleep(0.2)

            may_end.set()

            await _until(lambda: _has_ended(queue, behind))
            assert not await _has_ended(queue, held)

    asyncio.run(scenario())


def test_a_hint_that_comes_while_due_jobs_are_staged_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        ran = asyncio.Event()
        staged = asyncio.Event()
        stage = Jobs.stage
        async with _working(tmp_path, {"work": lambda _: ran.set()}, lease_ms=LONG_LEASE_MS) as queue:
            now = queue.storage.clock.now
            await _quiet()

            async def answered_late(self: Jobs) -> Instant | None:
                found = await stage(self)
                if not staged.is_set():
                    staged.set()
                    await queue.jobs.put(NewJob(kind="work", pool=POOL, run_at=Instant(now() + SECOND // 4)))
                    await asyncio.sleep(0.05)
                return found

            monkeypatch.setattr(Jobs, "stage", answered_late)
            await queue.jobs.put(NewJob(kind="work", pool=POOL, run_at=Instant(now() + 3_600 * SECOND)))
            await staged.wait()

            await ran.wait()

    asyncio.run(scenario())


def test_one_failed_look_for_changes_does_not_end_the_listening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        ran = asyncio.Event()
        failed = asyncio.Event()
        look = Committer.data_version

        def fails_once(self: Committer[Any]) -> int:
            if not failed.is_set():
                failed.set()
                raise apsw.IOError("made to fail")
            return look(self)

        async with _working(tmp_path, {"work": lambda _: ran.set()}, lease_ms=LONG_LEASE_MS) as queue:
            await _quiet()
            monkeypatch.setattr(Committer, "data_version", fails_once)
            await failed.wait()

            await queue.jobs.put(NewJob(kind="work", pool=POOL))

            await ran.wait()

    asyncio.run(scenario())


def test_a_run_that_is_stopped_before_its_first_step_ends_and_frees_its_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a beat whose answer comes in the very turn of the event loop in which the handler is entered."""
    enter = Worker._enter

    def enter_and_stop(self: Worker, life: Any, job: ClaimedJob) -> None:
        enter(self, life, job)
        if job.kind == "stopped":
            life.running[job.id].stop()

    async def endless(_: ClaimedJob) -> None:
        await asyncio.Event().wait()

    async def work(_: ClaimedJob) -> None:
        return None

    async def scenario() -> None:
        async with _working(tmp_path, {"stopped": endless, "next": work}, lease_ms=LONG_LEASE_MS) as queue:
            stopped = (await queue.jobs.put(NewJob(kind="stopped", pool=POOL, retry=NO_RETRY))).job_id
            following = (await queue.jobs.put(NewJob(kind="next", pool=POOL, retry=NO_RETRY))).job_id

            await _until(lambda: _has_ended(queue, following))
            ended = await queue.jobs.get(stopped)
            assert isinstance(ended, FinishedJob)
            assert (ended.status, ended.error) == ("FAILED", "stopped by its worker")

    monkeypatch.setattr(Worker, "_enter", enter_and_stop)
    asyncio.run(scenario())


def test_a_run_stops_when_its_lease_may_have_run_out_although_the_store_hangs(tmp_path: Path) -> None:
    """As under a process that was frozen while it held the file."""

    async def scenario() -> None:
        entered, stopped = asyncio.Event(), asyncio.Event()

        async def endless(_: ClaimedJob) -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        async with _working(tmp_path, {"endless": endless}, lease_ms=SHORT_LEASE_MS) as queue:
            await queue.jobs.put(NewJob(kind="endless", pool=POOL, retry=NO_RETRY))
            await entered.wait()

            lock = os.open(tmp_path / "t.db-lock", os.O_RDWR)
            try:
                await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
                await stopped.wait()
            finally:
                os.close(lock)

    asyncio.run(scenario())


def test_a_worker_that_cannot_report_for_a_lease_gives_its_session_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heart has a store of its own, which goes on working."""

    async def scenario() -> None:
        entered, may_end = asyncio.Event(), asyncio.Event()

        async def work(_: ClaimedJob) -> None:
            entered.set()
            await may_end.wait()

        transact = SqliteStorage.transact
        async with _working(tmp_path, {"work": work}, lease_ms=SHORT_LEASE_MS) as queue:
            other = await Queue.open(Settings(database_url=str(tmp_path / "t.db"), lease_ms=SHORT_LEASE_MS))
            put = await queue.jobs.put(NewJob(kind="work", pool=POOL, retry=NO_RETRY))
            await entered.wait()

            async def poisoned(self: SqliteStorage, work: Any, *, single: bool = False) -> Any:
                if self is queue.storage:
                    raise Unavailable("made to fail")
                return await transact(self, work, single=single)

            async def is_rescued() -> bool:
                await other.sessions.rescue_expired()
                return await _has_ended(other, put.job_id)

            with monkeypatch.context() as patch:
                patch.setattr(SqliteStorage, "transact", poisoned)
                may_end.set()
                try:
                    await _until(is_rescued)
                finally:
                    await other.close()

    asyncio.run(scenario())
