"""A timekeeper and a worker in one process, on the machine's own clock and real databases."""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from duly import every
from duly.bootstrap import Queue, Settings
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.policies import Overlap, Policies
from duly.domain.pools import Pool
from duly.domain.schedules import Target
from duly.domain.sessions import ClaimedJob
from duly.timekeeper.timekeeper import Timekeeper
from duly.worker.worker import Worker

WIDE = PoolName("wide")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if store == "sqlite":
        return Settings(database_url=str(tmp_path / "duly.db"))
    return Settings(database_url=request.getfixturevalue("fresh_postgres_url"))


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


@pytest.mark.serial
@pytest.mark.req("FLOW-01")
def test_schedules_of_every_second_run_each_second_once(settings: Settings) -> None:
    async def scenario() -> None:
        queue = await Queue.open(settings)
        await queue.pools.define(Pool(name=WIDE, slots=100))
        entered: list[str | None] = []

        async def enter(job: ClaimedJob) -> None:
            entered.append(job.key)

        keepers: list[Timekeeper | Worker] = [queue.timekeeper(), queue.timekeeper()]
        worker = queue.worker(handlers={"work": enter}, pools={WIDE: 10}, name="worker")
        working = [asyncio.create_task(each.run()) for each in (*keepers, worker)]
        names = [f"s{n}" for n in range(5)]
        policies = Policies(overlap=Overlap.QUEUE)
        for name in names:
            target = Target(kind="work", pool=WIDE)
            await queue.schedules.create(
                schedule_id=name, owner="ann", cadence=every("1s"), target=target, policies=policies
            )
        await asyncio.sleep(3.5)
        for each in (*keepers, worker):
            each.stop()
        await asyncio.gather(*working)

        for name in names:
            runs = await queue.schedules.runs(name, owner="ann")
            slots = [run.scheduled_for for run in runs]
            assert len(runs) >= 3
            assert slots == list(range(slots[0], slots[-1] - 1, -SECOND))
            assert max(run.opened_at - run.fire_at for run in runs) < SECOND // 2
        assert len(entered) == len(set(entered)) >= 15
        await queue.close()

    run(scenario())


@pytest.mark.req("OWN-06")
def test_coverage_goes_on_while_a_handler_holds_up_the_loop(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.timekeeper.heart.BEAT", Micros(SECOND // 20))

    async def scenario() -> None:
        queue = await Queue.open(settings)
        keeper = queue.timekeeper()
        working = asyncio.create_task(keeper.run())
        await asyncio.sleep(0.3)
        time.sleep(1)  # noqa: ASYNC251 - that is what a careless handler does

        spans = await queue.storage.transact(lambda tx: tx.ledger.coverage(Instant(0)))
        assert queue.storage.clock.now() - spans[-1].end < SECOND // 2
        keeper.stop()
        await working
        await queue.close()

    run(scenario())
