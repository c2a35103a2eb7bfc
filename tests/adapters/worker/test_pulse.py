"""Where a worker's heart beats, and what happens when it finds no store."""

import asyncio

import pytest

from duly.application.jobs import Jobs
from duly.application.sessions import Sessions
from duly.domain.errors import Unavailable
from duly.domain.ids import PoolName
from duly.domain.jobs import NewJob
from duly.domain.sessions import ClaimedJob
from duly.storage.sqlite.storage import SqliteStorage
from duly.system.dice import SystemDice
from duly.worker.pulse import LoopPulse, MakeHeart, Pulse
from duly.worker.worker import Worker


class _PulseWithoutStore(LoopPulse):
    async def start(self, make_heart: MakeHeart) -> None:
        raise Unavailable("the database cannot be reached")


@pytest.mark.req("RISK-02", error=True)
@pytest.mark.store("sqlite")
def test_a_worker_whose_heart_finds_no_store_tries_again() -> None:
    async def run_one() -> list[str]:
        storage = await SqliteStorage.open(":memory:")
        jobs, sessions = Jobs(storage, SystemDice()), Sessions(storage, SystemDice())
        pulses: list[Pulse] = [LoopPulse(sessions), _PulseWithoutStore(sessions)]
        ran: list[str] = []

        def handle(job: ClaimedJob) -> None:
            ran.append(job.id)
            worker.stop()

        worker = Worker(
            jobs=jobs,
            sessions=sessions,
            handlers={"work": handle},
            pools={PoolName("default"): 1},
            name="worker",
            pulse=pulses.pop,
        )
        put = await jobs.put(NewJob(kind="work"))
        async with asyncio.timeout(10):
            await worker.run()
        await storage.close()
        assert ran == [put.job_id]
        return ran

    assert len(asyncio.run(run_one())) == 1
