"""Runs that are asked to stop: those that do, those that take their time, and those that never do."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from duly.domain.jobs import Ending, JobStatus, Suspended
from duly.domain.sessions import ClaimedJob
from duly.worker.handlers import Handler
from duly.worker.job_runs import JobRun
from tests.adapters.worker.working import POOL, SHORT, claimed, ended, put, until, working


class Watched:
    """A run, and what was told of it."""

    def __init__(self, handler: Callable[[], Awaitable[object]], *, timeout_ms: int | None = None) -> None:
        self.endings: list[Ending] = []
        self.gone = asyncio.Event()
        self.ended = asyncio.Event()
        self.run = JobRun(
            claimed(timeout_ms=timeout_ms),
            handler(),
            patience=SHORT,
            on_end=self._on_end,
            on_gone=lambda _: self.gone.set(),
        )

    def _on_end(self, _: JobRun, ending: Ending | Suspended) -> None:
        assert isinstance(ending, Ending)
        self.endings.append(ending)
        self.ended.set()

    async def error(self) -> str | None:
        async with asyncio.timeout(10):
            await self.ended.wait()
        (ending,) = self.endings
        return ending.error


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _stubborn(until: asyncio.Event) -> str:
    while not until.is_set():
        with suppress(asyncio.CancelledError):
            await until.wait()
    return "too late"


async def _reluctant() -> str:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return "something, after all"


def test_a_run_whose_time_is_up_has_timed_out() -> None:
    async def scenario() -> None:
        assert await Watched(_for_ever, timeout_ms=20).error() == "timed out after 20 ms"

    asyncio.run(scenario())


def test_what_comes_after_the_time_was_up_does_not_count() -> None:
    async def scenario() -> None:
        watched = Watched(_reluctant, timeout_ms=20)

        assert await watched.error() == "timed out after 20 ms"
        assert watched.endings[0].status is JobStatus.FAILED

    asyncio.run(scenario())


def test_what_a_run_answers_that_was_only_asked_to_stop_counts() -> None:
    async def scenario() -> None:
        watched = Watched(_reluctant)
        watched.run.stop()

        assert await watched.error() is None
        assert watched.endings[0].result == '"something, after all"'

    asyncio.run(scenario())


def test_a_run_that_is_asked_before_its_first_step_ends_as_asked() -> None:
    async def scenario() -> None:
        watched = Watched(_for_ever)
        watched.run.stop()

        assert await watched.error() == "stopped by its worker"

    asyncio.run(scenario())


def test_a_run_is_asked_once_and_the_first_reason_stands() -> None:
    async def scenario() -> None:
        asked = 0

        async def count() -> None:
            nonlocal asked
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    asked += 1
                    if asked > 1:
                        raise

        watched = Watched(count, timeout_ms=20)
        await asyncio.sleep(0.05)
        watched.run.stop()
        watched.run.stop()

        assert "timed out after 20 ms, and goes on" in str(await watched.error())
        assert asked == 1
        watched.run.task.cancel()
        await watched.gone.wait()

    asyncio.run(scenario())


def test_a_run_that_does_not_stop_is_given_up_and_ends_once() -> None:
    async def scenario() -> None:
        enough = asyncio.Event()
        watched = Watched(lambda: _stubborn(enough), timeout_ms=20)

        assert "goes on: its executor is lost until it ends" in str(await watched.error())
        assert not watched.gone.is_set()
        watched.run.give_up()
        enough.set()
        async with asyncio.timeout(10):
            await watched.gone.wait()
        assert len(watched.endings) == 1

    asyncio.run(scenario())


def test_a_run_that_ended_cannot_be_stopped() -> None:
    async def scenario() -> None:
        async def answer() -> int:
            return 7

        watched = Watched(answer, timeout_ms=10_000)
        assert await watched.error() is None
        watched.run.stop()
        watched.run.give_up()

        assert [ending.result for ending in watched.endings] == ["7"]

    asyncio.run(scenario())


@pytest.mark.store("sqlite")
def test_the_executor_of_a_run_that_was_given_up_is_lost_until_it_ends() -> None:
    async def scenario() -> None:
        enough = asyncio.Event()
        ran = 0

        async def count(_: ClaimedJob) -> None:
            nonlocal ran
            ran += 1

        handlers: dict[str, Handler] = {"stubborn": lambda _: _stubborn(enough), "count": count}
        async with working(handlers) as (queue, worker):
            stuck = await ended(queue, await put(queue, "stubborn", timeout_ms=20))
            assert (stuck.status, (stuck.error or "")[:21]) == (JobStatus.FAILED, "timed out after 20 ms")
            assert worker.lost == {POOL: 1}

            waiting = await put(queue, "count")
            await asyncio.sleep(0.2)
            assert ran == 0

            enough.set()
            await ended(queue, waiting)
            assert (ran, worker.lost) == (1, {})

    asyncio.run(scenario())


@pytest.mark.store("sqlite")
def test_jobs_held_behind_a_lost_executor_are_left_to_others() -> None:
    async def scenario() -> None:
        enough = asyncio.Event()
        handlers: dict[str, Handler] = {"stubborn": lambda _: _stubborn(enough), "count": lambda _: None}
        async with working(handlers, prefetch={POOL: 2}) as (queue, worker):
            await put(queue, "stubborn", timeout_ms=200)
            await asyncio.sleep(0.1)
            held = [await put(queue, "count") for _ in range(2)]
            await until(lambda: bool(worker.lost))

            while len(await queue.jobs.upcoming(POOL)) < 2:  # noqa: ASYNC110 - a row rings no bell
                await asyncio.sleep(0.01)

            enough.set()
            for job_id in held:
                assert (await ended(queue, job_id)).status is JobStatus.COMPLETED

    asyncio.run(scenario())
