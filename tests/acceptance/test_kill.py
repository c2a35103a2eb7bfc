"""kill -9 at random moments: nothing lost, nothing doubled, and others go on within a lease.

`DULY_KILLS` sets how many kills each store gets; `DULY_KILLS_PRODUCTION` asks for that many more under the leases
that are used in production, which takes minutes. `DULY_SEED` repeats a run's choices, though not its timing.
"""

import asyncio
import os
import random
import secrets
from dataclasses import dataclass
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.ids import Lane, PoolName
from duly.domain.jobs import NewJob
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import LEASE
from tests.acceptance import checker
from tests.acceptance.journal import Journal, JournalReader
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until, until_in
from tests.acceptance.worker_process import session_name

pytestmark = pytest.mark.serial

WIDE, FOUR = PoolName("wide"), PoolName("four")
LIMITS = {WIDE: 1_000, FOUR: 4}
EXECUTORS = {WIDE: 6, FOUR: 2}
PROCESSES = 4
MOST_UNDONE = 150
RECOVERY_SLACK_SECONDS = 3
AT_ONCE_AND_ALWAYS = RetryPolicy(max_attempts=1_000, backoff_ms=0)


class Supervisor:
    """Keeps workers alive and the queue filled, and kills at random; what was acknowledged goes into its journal."""

    def __init__(self, workers: Workers, folder: Path, *, kills: int, longest_pause: float) -> None:
        self._workers = workers
        self._acknowledged = Journal(folder / "acknowledged", fsync=True)
        self.acknowledged = JournalReader(folder / "acknowledged")
        self._kills = kills
        self._longest_pause = longest_pause
        self.seed = int(os.environ.get("DULY_SEED") or secrets.randbelow(10**9))
        self._dice = random.Random(self.seed)
        self._n = 0
        self._enough = False

    async def run(self, queue: Queue) -> None:
        for _ in range(PROCESSES):
            self._workers.start(EXECUTORS)
        putting = asyncio.create_task(self._keep_putting(queue))
        try:
            for _ in range(self._kills):
                await self._kill_one()
        finally:
            # Not cancelled: a put whose answer nobody waits for may be there all the same.
            self._enough = True
            await putting
            self._acknowledged.close()

    @property
    def undone(self) -> int:
        return len(self.acknowledged.noted("put")) - len({line.chain for line in self._workers.journal.left()})

    async def _keep_putting(self, queue: Queue) -> None:
        while not self._enough:
            if self.undone > MOST_UNDONE:
                await asyncio.sleep(POLL_SECONDS)
                continue
            await self._put_some(queue)

    async def _put_some(self, queue: Queue) -> None:
        """Some in one transaction, some by callers that come at the same time."""
        news = [self._new() for _ in range(self._dice.randint(1, 8))]
        together = self._dice.random() < 0.5
        puts = await (queue.jobs.put_many(news) if together else asyncio.gather(*map(queue.jobs.put, news)))
        for put in puts:
            self._acknowledged.note("put", job=put.job_id)

    def _new(self) -> NewJob:
        self._n += 1
        params = {"n": self._n, "work_ms": self._dice.choice((0, 0, 5, 20, 100))}
        lane = Lane(f"lane-{self._n % 40}") if self._dice.random() < 0.3 else None
        pool = FOUR if lane is None and self._dice.random() < 0.2 else WIDE
        return NewJob(kind="work", params=params, lane=lane, pool=pool, retry=AT_ONCE_AND_ALWAYS)

    async def _kill_one(self) -> None:
        """One that has begun to work, at any moment of its work, while others live that can take over."""
        await until(lambda: len(self._working()) >= 3, within=60, what="three workers work")
        await asyncio.sleep(self._dice.uniform(0, self._longest_pause))
        self._workers.kill(self._dice.choice(self._working()))
        self._workers.start(EXECUTORS)

    def _working(self) -> list[int]:
        seen = {line.pid for line in self._workers.journal.entered()}
        return [pid for pid in self._workers.alive if pid in seen]


@dataclass(frozen=True, slots=True)
class Plan:
    kills: int
    lease_ms: int
    longest_pause: float


PLANS = {"short-lease": Plan(int(os.environ.get("DULY_KILLS") or 30), 2_000, 0.4)}
if os.environ.get("DULY_KILLS_PRODUCTION"):
    PLANS["production-lease"] = Plan(int(os.environ["DULY_KILLS_PRODUCTION"]), LEASE // 1_000, 6.0)


@pytest.mark.req("DEC-008")
@pytest.mark.req("RISK-02")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_workers_are_killed_at_any_moment_and_nothing_is_lost_or_doubled(
    plan: Plan, database_url: str, tmp_path: Path
) -> None:
    patience = plan.lease_ms / 1_000 + 60

    async def supervise(supervisor: Supervisor, workers: Workers) -> None:
        async with opened(database_url, LIMITS) as queue:
            await supervisor.run(queue)
            await until(lambda: supervisor.undone == 0, within=patience, what="what was put is done")
            await until_in(
                database_url,
                lambda facts: {session.name for session in facts.sessions} == set(map(session_name, workers.alive)),
                within=patience,
                what="all the living have a session, and none of the dead",
            )
        await workers.stop_all()

    with Workers(database_url, tmp_path, lease_ms=plan.lease_ms, fsync=True) as workers:
        supervisor = Supervisor(workers, tmp_path, kills=plan.kills, longest_pause=plan.longest_pause)
        print(f"seed {supervisor.seed}")
        asyncio.run(supervise(supervisor, workers))

    put = [line.job for line in supervisor.acknowledged.read()]
    facts = asyncio.run(checker.facts_of(database_url))
    runs = checker.runs_of(workers.journal.read(), workers.killed)
    print(checker.figures(facts, runs, workers.killed, put))
    with_room = [run for run in runs if run.entered.pool == WIDE]
    assert len(workers.killed) == plan.kills
    checker.require(
        checker.lost_or_doubled(facts, put),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.recorded_without_run(facts, runs),
        checker.unexplained_failures(facts, runs, workers.killed),
        checker.entered_too_often(facts, runs, workers.killed),
        checker.overlapping_in_lanes(runs),
        *(checker.over_limit(runs, pool, limit) for pool, limit in LIMITS.items()),
        checker.slower_than(
            plan.lease_ms / 1_000 + RECOVERY_SLACK_SECONDS, checker.recoveries(facts, with_room, workers.killed)
        ),
    )
