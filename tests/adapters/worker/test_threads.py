"""Plain functions in threads: they may block, are asked to stop, and are given up when they do not."""

import asyncio
import os
import threading
import time

import pytest

from duly.domain.jobs import JobStatus
from duly.worker.context import JobContext, Stopped
from duly.worker.handlers import DoNotRetry
from duly.worker.threads import in_thread
from tests.adapters.worker.working import POOL, ended, put, until, working

pytestmark = pytest.mark.store("sqlite")


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("duly ")]


def test_functions_that_block_run_side_by_side_and_hold_nobody_up() -> None:
    async def scenario() -> None:
        together = threading.Barrier(4, timeout=20)

        def meet(number: int) -> dict[str, int]:
            together.wait()
            return {"number": number}

        async with working({"meet": in_thread(meet)}, executors=4) as (queue, _):
            jobs = [await put(queue, "meet", params={"number": number}) for number in range(4)]

            results = {(await ended(queue, job_id)).result for job_id in jobs}

        assert results == {f'{{"number":{number}}}' for number in range(4)}
        await until(lambda: not _threads())

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no"), "ValueError: no"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (StopIteration(), "StopIteration: "),
        (DoNotRetry("never"), "DoNotRetry: never"),
        (Stopped(), "CancelledError: "),
    ],
)
def test_whatever_a_function_raises_fails_its_run_alone(error: BaseException, said: str) -> None:
    def fail() -> None:
        raise error

    async def scenario() -> None:
        async with working({"fail": in_thread(fail), "good": in_thread(lambda: None)}) as (queue, _):
            job = await ended(queue, await put(queue, "fail"))
            assert (job.status, job.error) == (JobStatus.FAILED, said)
            assert (await ended(queue, await put(queue, "good"))).status is JobStatus.COMPLETED

    asyncio.run(scenario())


def _patient(context: JobContext) -> None:
    while True:
        context.check()
        time.sleep(0.005)


def test_a_function_that_checks_stops_when_its_time_is_up() -> None:
    async def scenario() -> None:
        async with working({"patient": in_thread(_patient)}) as (queue, worker):
            job = await ended(queue, await put(queue, "patient", timeout_ms=50))

            assert (job.status, job.error) == (JobStatus.FAILED, "timed out after 50 ms")
            assert worker.lost == {}

    asyncio.run(scenario())


def test_a_function_that_checks_stops_when_it_is_cancelled() -> None:
    async def scenario() -> None:
        async with working({"patient": in_thread(_patient)}) as (queue, worker):
            job_id = await put(queue, "patient")
            await until(lambda: bool(_threads()))
            await queue.jobs.cancel(job_id, reason="no longer wanted")

            job = await ended(queue, job_id)
            assert (job.status, job.error) == (JobStatus.CANCELLED, "no longer wanted")
            assert worker.lost == {}

    asyncio.run(scenario())


def test_a_function_that_ignores_its_time_is_fenced_and_its_thread_counts_as_lost() -> None:
    async def scenario() -> None:
        enough = threading.Event()
        most_at_once = 0

        def stubborn(context: JobContext) -> str:
            nonlocal most_at_once
            most_at_once = max(most_at_once, len(_threads()))
            context.log("I will not stop")
            enough.wait()
            context.log("now I do")
            return "too late"

        handlers = {"stubborn": in_thread(stubborn), "good": in_thread(lambda: None)}
        async with working(handlers, executors=2) as (queue, worker):
            stuck = await put(queue, "stubborn", timeout_ms=50)
            job = await ended(queue, stuck)
            assert job.status is JobStatus.FAILED
            assert job.error == "timed out after 50 ms, and goes on: its executor is lost until it ends"
            assert worker.lost == {POOL: 1}

            last = [await put(queue, "stubborn", timeout_ms=300) for _ in range(2)]
            await until(lambda: len(_threads()) == 2)
            await asyncio.sleep(0.1)
            assert [job.id for job in await queue.jobs.upcoming(POOL)] == last[1:], "one executor is left, not two"

            await ended(queue, last[0])
            await queue.jobs.cancel(last[1], reason="there is nobody to run it")
            waiting = [await put(queue, "good") for _ in range(3)]
            await asyncio.sleep(0.2)
            assert len(await queue.jobs.upcoming(POOL)) == 3
            assert worker.lost == {POOL: 2}

            enough.set()
            for job_id in waiting:
                await ended(queue, job_id)
            assert worker.lost == {}
            assert await queue.jobs.get(stuck) == job, "what it answered in the end changed nothing"
            while len(await queue.logs.lines(stuck)) < 2:  # noqa: ASYNC110 - a row rings no bell
                await asyncio.sleep(0.01)
        assert most_at_once == 2

    asyncio.run(scenario())


@pytest.mark.filterwarnings("ignore:This process")
def test_a_copy_that_a_function_forks_reports_nothing() -> None:
    def fork() -> dict[str, int]:
        copy = os.fork()
        return {"left": os.waitpid(copy, 0)[1]} if copy else {"copy": 1}

    async def scenario() -> None:
        async with working({"fork": in_thread(fork)}) as (queue, _):
            job = await ended(queue, await put(queue, "fork"))

            assert job.result == '{"left":0}'

    asyncio.run(scenario())
