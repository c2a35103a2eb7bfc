"""A worker that is told to stop lets what runs go on for its grace, unless it is told to hurry."""

import asyncio

from duly.domain.instants import SECOND, Micros
from duly.domain.sessions import ClaimedJob
from tests.adapters.worker.working import ended, put, working

HOUR = Micros(3_600 * SECOND)


def test_a_worker_in_a_hurry_ends_its_grace() -> None:
    async def scenario() -> None:
        entered = asyncio.Event()

        async def linger(_: ClaimedJob) -> None:
            entered.set()
            await asyncio.Event().wait()

        async with working({"linger": linger}, grace=HOUR) as (queue, worker):
            job_id = await put(queue, "linger")
            await entered.wait()
            worker.stop()
            worker.hurry()
            assert (await ended(queue, job_id)).error == "stopped by its worker"

    asyncio.run(scenario())


def test_without_hurry_what_runs_goes_on() -> None:
    async def scenario() -> None:
        entered, may_end = asyncio.Event(), asyncio.Event()

        async def linger(_: ClaimedJob) -> str:
            entered.set()
            await may_end.wait()
            return "done"

        async with working({"linger": linger}, grace=HOUR) as (queue, worker):
            job_id = await put(queue, "linger")
            await entered.wait()
            worker.stop()
            asyncio.get_running_loop().call_later(0.1, may_end.set)
            assert (await ended(queue, job_id)).result == '"done"'

    asyncio.run(scenario())
