"""The database goes away for a while: workers wait for it and go on, and nothing is lost."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.errors import Unavailable
from duly.domain.ids import JobKey, PoolName
from duly.domain.jobs import NewJob
from duly.domain.retries import RetryPolicy
from tests import postgres_server
from tests.acceptance import checker
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until

pytestmark = [pytest.mark.serial, pytest.mark.store("postgres")]

WIDE = PoolName("wide")
LIMITS = {WIDE: 100}
OUTAGES = 3
OUTAGE_SECONDS = 3


@pytest.mark.req("RISK-02")
@pytest.mark.usefixtures("postgres_server_url")
def test_workers_outlive_their_database_and_nothing_is_lost(tmp_path: Path) -> None:
    """The lease outlasts the outage, so nobody may take anything from anybody: each job is entered once."""

    async def survive(database_url: str, directory: Path, workers: Workers) -> list[str]:
        put: list[str] = []
        async with opened(database_url, LIMITS) as queue:
            for _ in range(4):
                workers.start({WIDE: 4})
            await workers.all_ready()
            enough = asyncio.Event()
            putting = asyncio.create_task(_keep_putting(queue, put, enough))
            for _ in range(OUTAGES):
                await _more_are_done(workers, putting)
                await asyncio.to_thread(postgres_server.stop_at_once, directory)
                await asyncio.sleep(OUTAGE_SECONDS)
                await asyncio.to_thread(postgres_server.start_again, directory)
            await _more_are_done(workers, putting)
            enough.set()
            await putting
            await until(lambda: len(workers.journal.left()) >= len(put), within=60, what="what was put is done")
        await workers.stop_all()
        return put

    with (
        postgres_server.running_postgres_in() as (directory, url),
        Workers(url, tmp_path, lease_ms=30_000) as workers,
    ):
        put = asyncio.run(survive(url, directory, workers))
        facts = asyncio.run(checker.facts_of(url))

    runs = checker.runs_of(workers.journal.read())
    checker.require(
        checker.lost_or_doubled(facts, put),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.recorded_without_run(facts, runs),
        checker.unexplained_failures(facts, runs, {}),
    )
    assert len(runs) == len(put)


async def _more_are_done(workers: Workers, putting: asyncio.Task[None]) -> None:
    done = len(workers.journal.left())

    def more_are_done() -> bool:
        if putting.done():
            putting.result()
        return len(workers.journal.left()) > done + 20

    await until(more_are_done, within=60, what="workers work")


async def _keep_putting(queue: Queue, put: list[str], enough: asyncio.Event) -> None:
    """One at a time, so that workers often wait and then claim with nothing to report."""
    while not enough.is_set():
        put.append(await _put_whatever_happens(queue, len(put)))
        await asyncio.sleep(POLL_SECONDS / 4)


async def _put_whatever_happens(queue: Queue, n: int) -> str:
    """A slow machine's database may stay away for longer than one put waits for it: its key makes it safe again."""
    new = NewJob(
        kind="work", params={"n": n, "work_ms": 10}, pool=WIDE, key=JobKey(f"n-{n}"), retry=RetryPolicy(backoff_ms=0)
    )
    while True:
        with contextlib.suppress(Unavailable):
            return (await queue.jobs.put(new)).job_id
