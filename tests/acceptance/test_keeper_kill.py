"""A process that keeps time and works is killed -9, again and again: every slot is accounted for, once.

`DULY_KILLS` sets how many kills each store gets, half of them at random moments, half at named crash points;
`DULY_KILLS_PRODUCTION` asks for that many more under the leases that are used in production. `DULY_SEED` repeats a
run's choices, though not its timing.
"""

import asyncio
import os
import random
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from duly.domain.policies import Overlap, Policies
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import LEASE
from tests.acceptance import checker, ledger_checker
from tests.acceptance.crash_points import MOMENTS, CrashPoint
from tests.acceptance.every_second import EXECUTORS, LIMITS, EverySecond, until_all_ended
from tests.acceptance.journal import boottime
from tests.acceptance.ledger_checker import SECOND, Ledger, Span, ledger_of
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until_in
from tests.acceptance.worker_process import session_name

# How long runs take, by the second of their slot: short ones, and some that the next slot finds at work.
WORK_MS = {
    Overlap.ALLOW: [0, 300, 1_500],
    Overlap.SKIP: [0, 100, 1_300],
    Overlap.QUEUE: [0, 50, 20, 700],
    Overlap.QUEUE_ONE: [0, 100, 2_300, 50],
    Overlap.REPLACE: [0, 100, 1_500],
}
# What every run of this test must have died at, on either store, if it has enough lives.
STEPS = ("save_span", "insert_runs", "advance_schedules", "open_session", "renew_session", "end_runs")
RECOVERY_SLACK_SECONDS = 3
LONGEST_WAIT_FOR_POINT = 6


@dataclass(frozen=True, slots=True)
class Plan:
    kills: int
    lease_ms: int
    longest_life: float


PLANS = {"short-lease": Plan(int(os.environ.get("DULY_KILLS") or 6), 2_000, 2.5)}
if os.environ.get("DULY_KILLS_PRODUCTION"):
    PLANS["production-lease"] = Plan(int(os.environ["DULY_KILLS_PRODUCTION"]), LEASE // 1_000, 20.0)


class Supervisor:
    """Starts the process again whenever it is gone; kills it at random moments and lets it die at named points."""

    def __init__(self, workers: Workers, plan: Plan) -> None:
        self._workers = workers
        self._plan = plan
        self.seed = int(os.environ.get("DULY_SEED") or secrets.randbelow(10**9))
        self._dice = random.Random(self.seed)
        self.died_at: set[CrashPoint] = set()

    async def run(self) -> None:
        points = self._points()
        for number in range(self._plan.kills):
            if number % 2 == 0:
                await self._kill_at_random()
            else:
                await self._let_die_at(next(points))
        self._workers.start_keeper(EXECUTORS)

    def _points(self) -> Iterator[CrashPoint]:
        """Those of the steps first, then in turns whichever was met and not yet died at, and any at a later time."""
        yield from (CrashPoint(statement, moment) for statement in STEPS for moment in MOMENTS)
        while True:
            points = [CrashPoint(statement, moment) for statement in self._workers.statements for moment in MOMENTS]
            self._dice.shuffle(points)
            yield from (point for point in points if point not in self.died_at)
            yield from (point._replace(nth=self._dice.randint(2, 4)) for point in points[:10])

    @property
    def points(self) -> str:
        """Which there were, and which of them did not come while somebody waited for them."""
        met = {CrashPoint(statement, moment) for statement in self._workers.statements for moment in MOMENTS}
        return f"died at {len(self.died_at)} of {len(met)} crash points, not at {sorted(map(str, met - self.died_at))}"

    async def _kill_at_random(self) -> None:
        """Even before it is ready, now and then."""
        pid = self._workers.start_keeper(EXECUTORS)
        if self._dice.random() < 0.9:
            await self._workers.all_ready()
            await asyncio.sleep(self._dice.uniform(0, self._plan.longest_life))
        else:
            await asyncio.sleep(self._dice.uniform(0, 1))
        self._workers.kill(pid)

    async def _let_die_at(self, point: CrashPoint) -> None:
        """At a point that does not come it is killed after a while; it is a kill at a random moment then."""
        pid = self._workers.start_keeper(EXECUTORS, crash_at=point)
        deadline = boottime() + LONGEST_WAIT_FOR_POINT
        while not self._workers.crashed(pid):
            if boottime() > deadline:
                self._workers.kill(pid)
                return
            await asyncio.sleep(POLL_SECONDS)
        self.died_at.add(point._replace(nth=1))


async def _create(schedules: EverySecond) -> None:
    """One of each policy, and one that is not tried again."""
    for overlap, work_ms in WORK_MS.items():
        await schedules.create(overlap.value, Policies(overlap=overlap), work_ms=work_ms)
    await schedules.create("fragile", Policies(overlap=Overlap.ALLOW), retry=NO_RETRY, work_ms=[0, 500])


@pytest.mark.req("OWN-01")
@pytest.mark.req("OWN-06")
@pytest.mark.req("GRAPH-08")
@pytest.mark.req("CRON-06")
@pytest.mark.req("CRON-11")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_timekeeper_is_killed_at_any_moment_and_every_slot_is_accounted_for_once(
    plan: Plan, database_url: str, tmp_path: Path
) -> None:
    async def supervise(supervisor: Supervisor, workers: Workers) -> dict[str, range]:
        async with opened(database_url, LIMITS) as queue:
            schedules = EverySecond(queue)
            await _create(schedules)
            await supervisor.run()
            await workers.all_ready()
            planned = await schedules.pause()
            await until_all_ended(database_url, within=plan.lease_ms / 1_000 * 2 + 120)
            await until_in(
                database_url,
                lambda facts: {session.name for session in facts.sessions} == set(map(session_name, workers.alive)),
                within=plan.lease_ms / 1_000 * 2 + 60,
                what="the living have a session, and none of the dead",
            )
        await workers.stop_all()
        return planned

    with Workers(database_url, tmp_path, lease_ms=plan.lease_ms, fsync=True) as workers:
        supervisor = Supervisor(workers, plan)
        print(f"seed {supervisor.seed}")
        planned = asyncio.run(supervise(supervisor, workers))

    ledger, facts = asyncio.run(_facts(database_url))
    journal, killed = workers.journal.read(), workers.killed
    runs = checker.runs_of(journal, killed)
    down = ledger_checker.downtimes(journal, killed)
    times = ledger_checker.recoveries(facts, runs, killed)
    print(_figures(ledger, killed, down, times.values()))
    print(supervisor.points)
    assert len(killed) == plan.kills
    assert _longest(down) < 60, "an outage is another story"
    checker.require(
        ledger_checker.lost(ledger, planned),
        ledger_checker.missed(ledger),
        ledger_checker.not_ended(ledger),
        ledger_checker.unlike_the_journal(ledger, runs, killed),
        ledger_checker.unlike_the_policies(ledger),
        ledger_checker.entered_too_often(facts, runs, killed),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.recorded_without_run(facts, runs),
        checker.unexplained_failures(facts, runs, killed),
        checker.overlapping_in_lanes(runs),
        ledger_checker.slower_than(plan.lease_ms / 1_000 + RECOVERY_SLACK_SECONDS, times, down),
    )
    if plan.kills >= 50:
        assert supervisor.died_at >= {CrashPoint(statement, moment) for statement in STEPS for moment in MOMENTS}
    print(asyncio.run(ledger_checker.require_clean_audit(workers.environment)))


async def _facts(database_url: str) -> tuple[Ledger, checker.Facts]:
    return await ledger_of(database_url), await checker.facts_of(database_url)


def _figures(ledger: Ledger, killed: Collection[int], down: Sequence[Span], times: Collection[Span]) -> str:
    ends = ", ".join(f"{count} {end}" for end, count in Counter(row.status for row in ledger.rows).items())
    return (
        f"{len(killed)} kills; {len(ledger.rows)} slots: {ends},"
        f" {sum(gap.slots for gap in ledger.gaps)} missed; {len(times)} runs hit and tried again;"
        f" worst recovery {_longest(times):.2f} s, worst downtime {_longest(down):.2f} s,"
        f" latest slot {max(row.opened_at - row.fire_at for row in ledger.rows) / SECOND:.2f} s late"
    )


def _longest(spans: Collection[Span]) -> float:
    return max((end - start for start, end in spans), default=0)
