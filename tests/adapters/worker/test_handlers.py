"""Handlers that misbehave: each ends its own run, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from duly import InvalidInput
from duly.bootstrap import Queue, Settings
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Ending, FinishedJob, JobStatus, NewJob
from duly.domain.pools import Pool
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import ClaimedJob
from duly.worker.pulse import ThreadPulse
from duly.worker.worker import Worker

POOL = PoolName("wide")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def _raise(error: BaseException) -> Callable[[ClaimedJob], object]:
    def handler(_: ClaimedJob) -> object:
        raise error

    return handler


def _raise_later(error: BaseException) -> Callable[[ClaimedJob], object]:
    async def handler(_: ClaimedJob) -> object:
        raise error

    return handler


async def _run(path: Path, handler: Callable[[ClaimedJob], object], **given: Any) -> FinishedJob:
    """The job's end, and the proof that its worker lived on: a second job after it."""
    queue = await Queue.open(Settings(database_url=str(path / "t.db")))
    await queue.pools.define(Pool(name=POOL, slots=4))
    worker = queue.worker(handlers={"bad": handler, "good": lambda _: None}, pools={POOL: 1}, name="w")
    working = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(30):
            bad = await queue.jobs.put(NewJob(kind="bad", pool=POOL, retry=NO_RETRY, **given))
            good = await queue.jobs.put(NewJob(kind="good", pool=POOL))
            await _until(lambda: _has_ended(queue, good.job_id))
            ended = await queue.jobs.get(bad.job_id)
            assert isinstance(ended, FinishedJob)
            worker.stop()
            await working
            return ended
    finally:
        await queue.close()


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():  # noqa: ASYNC110 - the fact is a row of the database, which rings no bell
        await asyncio.sleep(0.01)


async def _has_ended(queue: Queue, job_id: JobId) -> bool:
    return isinstance(await queue.jobs.get(job_id), FinishedJob)


async def _was_retried(queue: Queue, job_id: JobId) -> bool:
    return len(await queue.jobs.chain(job_id)) > 1


@pytest.mark.parametrize("make", [_raise, _raise_later], ids=["plain", "async"])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no"), "ValueError: no"),
        (Unspeakable(), "Unspeakable: (it cannot be shown)"),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError: "),
        (ValueError("a\0b\ud800"), "ValueError: a\N{REPLACEMENT CHARACTER}b?"),
    ],
    ids=["error", "unspeakable", "exit", "cancelled", "unstorable"],
)
def test_whatever_a_handler_raises_fails_its_run_alone(
    tmp_path: Path, make: Callable[[BaseException], Callable[[ClaimedJob], object]], error: BaseException, said: str
) -> None:
    ended = asyncio.run(_run(tmp_path, make(error)))

    assert (ended.status, ended.error) == (JobStatus.FAILED, said)


def test_a_result_that_cannot_be_kept_fails_the_run(tmp_path: Path) -> None:
    ended = asyncio.run(_run(tmp_path, lambda _: object()))

    assert ended.status is JobStatus.FAILED
    assert ended.error is not None
    assert ended.error.startswith("the handler's result cannot be kept")


def test_an_ending_that_cannot_be_kept_fails_the_run(tmp_path: Path) -> None:
    ended = asyncio.run(_run(tmp_path, lambda _: Ending(status=JobStatus.COMPLETED, exit_code=2**70)))

    assert ended.status is JobStatus.FAILED
    assert ended.error is not None
    assert "exit_code" in ended.error


@pytest.mark.parametrize(
    ("field", "value"),
    [("error", "a\0"), ("error", "\ud800"), ("error", "x" * 10_001), ("exit_code", True), ("result", {"a": 1})],
)
def test_an_ending_is_checked_where_it_is_made(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        Ending(status=JobStatus.FAILED, **{field: value})  # type: ignore[arg-type]

    assert refused.value.field == field


def test_a_kind_without_a_handler_is_left_to_its_retries(tmp_path: Path) -> None:
    async def scenario() -> None:
        queue = await Queue.open(Settings(database_url=str(tmp_path / "t.db")))
        worker = queue.worker(handlers={}, pools={PoolName("default"): 1}, name="w")
        working = asyncio.create_task(worker.run())
        put = await queue.jobs.put(NewJob(kind="new"))
        async with asyncio.timeout(20):
            await _until(lambda: _was_retried(queue, put.job_id))
        chain = await queue.jobs.chain(put.job_id)
        assert "no handler for 'new'" in str(getattr(chain[0], "error", ""))
        worker.stop()
        await working
        await queue.close()

    asyncio.run(scenario())


def test_a_handler_that_will_not_stop_does_not_keep_its_worker(tmp_path: Path) -> None:
    async def scenario() -> None:
        entered, enough = asyncio.Event(), asyncio.Event()

        async def stubborn(_: ClaimedJob) -> None:
            entered.set()
            while not enough.is_set():
                with suppress(asyncio.CancelledError):
                    await enough.wait()

        queue = await Queue.open(Settings(database_url=str(tmp_path / "t.db")))
        worker = Worker(
            jobs=queue.jobs,
            sessions=queue.sessions,
            handlers={"stubborn": stubborn},
            pools={PoolName("default"): 1},
            name="w",
            grace=Micros(SECOND // 10),
            patience=Micros(SECOND // 10),
        )
        working = asyncio.create_task(worker.run())
        put = await queue.jobs.put(NewJob(kind="stubborn", retry=NO_RETRY))
        await entered.wait()

        worker.stop()
        async with asyncio.timeout(30):
            await working

        ended = await queue.jobs.get(put.job_id)
        assert isinstance(ended, FinishedJob)
        assert (ended.status, (ended.error or "")[:21]) == (JobStatus.FAILED, "stopped by its worker")
        enough.set()
        await queue.close()

    asyncio.run(scenario())


def test_a_worker_cancelled_while_its_heart_starts_leaves_no_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        queue = await Queue.open(Settings(database_url=str(tmp_path / "t.db")))
        for pause in (0.0, 0.0005, 0.002, 0.01):
            working = asyncio.create_task(queue.worker(handlers={}, pools={PoolName("default"): 1}, name="w").run())
            await asyncio.sleep(pause)
            working.cancel()
            async with asyncio.timeout(20):
                await asyncio.gather(working, return_exceptions=True)
        await queue.close()

    asyncio.run(scenario())


def test_memory_has_one_heart_and_no_thread() -> None:
    async def scenario() -> None:
        queue = await Queue.open(Settings(database_url=":memory:"))
        done = asyncio.Event()
        worker = queue.worker(handlers={"w": lambda _: done.set()}, pools={PoolName("default"): 1}, name="w")
        working = asyncio.create_task(worker.run())
        await queue.jobs.put(NewJob(kind="w"))
        async with asyncio.timeout(20):
            await done.wait()
        assert not isinstance(worker._pulse, ThreadPulse)
        worker.stop()
        await working
        await queue.close()

    asyncio.run(scenario())
