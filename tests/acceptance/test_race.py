"""Many processes on one queue: each job once, lanes serial, pools within their limits, order kept."""

import asyncio
import signal
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.ids import Lane, PoolName
from duly.domain.jobs import NewJob
from duly.domain.retries import NO_RETRY
from tests.acceptance import checker
from tests.acceptance.processes import Workers, opened, until

pytestmark = pytest.mark.serial

WIDE, FOUR, ONE = PoolName("wide"), PoolName("four"), PoolName("one")
LIMITS = {WIDE: 96, FOUR: 4, ONE: 1}
# Far longer than the test: no session may end but by the worker's own will.
LEASE_MS = 60_000


def _mixed(n: int) -> NewJob:
    """Of ten jobs five are free, three have one of 50 lanes, one is in the pool of four, one in the pool of one."""
    match n % 10:
        case 0 | 1 | 2:
            return NewJob(kind="work", params={"n": n}, lane=Lane(f"lane-{n % 50}"), pool=WIDE, retry=NO_RETRY)
        case 3:
            return NewJob(kind="work", params={"n": n}, pool=FOUR, retry=NO_RETRY)
        case 4:
            return NewJob(kind="work", params={"n": n}, pool=ONE, retry=NO_RETRY)
    return NewJob(kind="work", params={"n": n}, pool=WIDE, retry=NO_RETRY)


async def _put(queue: Queue, numbers: range) -> list[str]:
    put: list[str] = []
    for first in range(numbers.start, numbers.stop, 500):
        batch = [_mixed(n) for n in range(first, min(first + 500, numbers.stop))]
        put += [done.job_id for done in await queue.jobs.put_many(batch)]
    return put


@pytest.mark.req("INV-003")
@pytest.mark.req("GRAPH-09")
@pytest.mark.req("CON-002")
def test_ten_thousand_jobs_race_over_sixteen_processes_and_each_runs_once(database_url: str, tmp_path: Path) -> None:
    jobs, processes = 10_000, 16

    async def race(workers: Workers) -> list[str]:
        async with opened(database_url, LIMITS) as queue:
            put = await _put(queue, range(jobs // 2))
            for _ in range(processes):
                workers.start({WIDE: 6, FOUR: 1, ONE: 1})
            await workers.all_ready()
            put += await _put(queue, range(jobs // 2, jobs))
        await until(lambda: len(workers.journal.left()) >= jobs, within=120, what="all jobs have run")
        await workers.stop_all()
        return put

    with Workers(database_url, tmp_path, lease_ms=LEASE_MS) as workers:
        put = asyncio.run(race(workers))

    facts = asyncio.run(checker.facts_of(database_url))
    runs = checker.runs_of(workers.journal.read())
    assert len(facts.finished) == len(runs) == len(set(put)) == jobs
    assert len({run.entered.pid for run in runs}) == processes
    checker.require(
        checker.lost_or_doubled(facts, put),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.recorded_without_run(facts, runs),
        checker.overlapping_in_lanes(runs),
        *(checker.over_limit(runs, pool, limit) for pool, limit in LIMITS.items()),
        checker.out_of_order([run for run in runs if run.entered.pool == ONE], _of_pool_one(put)),
    )


def _of_pool_one(put: list[str]) -> list[str]:
    return [job for n, job in enumerate(put) if _mixed(n).pool == ONE]


@pytest.mark.req("INV-004")
@pytest.mark.req("DEC-008")
def test_a_pool_of_one_keeps_its_order_while_its_workers_come_and_go(database_url: str, tmp_path: Path) -> None:
    jobs, per_worker = 200, 20

    async def relay(workers: Workers) -> list[str]:
        news = [NewJob(kind="work", params={"n": n, "work_ms": 2}, pool=ONE, retry=NO_RETRY) for n in range(jobs)]
        async with opened(database_url, LIMITS) as queue:
            put: list[str] = [done.job_id for done in await queue.jobs.put_many(news)]
        for _ in range(4):
            workers.start({ONE: 1})
        for seen in range(per_worker, jobs, per_worker):
            # Whoever has the pool keeps it, job after job; sent away, it leaves its turn to another process.
            await _left(workers, seen)
            workers.send(workers.journal.left()[-1].pid, signal.SIGTERM)
            workers.start({ONE: 1})
        await _left(workers, jobs)
        await workers.stop_all()
        return put

    with Workers(database_url, tmp_path, lease_ms=LEASE_MS) as workers:
        put = asyncio.run(relay(workers))

    facts = asyncio.run(checker.facts_of(database_url))
    runs = checker.runs_of(workers.journal.read())
    assert len({run.entered.pid for run in runs}) >= 4
    checker.require(
        checker.lost_or_doubled(facts, put),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.over_limit(runs, ONE, 1),
        checker.out_of_order(runs, put),
    )


async def _left(workers: Workers, count: int) -> None:
    await until(lambda: len(workers.journal.left()) >= count, within=60, what=f"{count} jobs have run")
