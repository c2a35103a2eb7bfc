"""Time stands still, jumps, or cannot be written down: what was missed is told from what is late, and nothing is lost.

By default a silence counts as an outage after 15 seconds, so that outages can be short; `DULY_LONG_OUTAGES=1` asks for
those of production: an outage after a minute, stops of 20 and of 90 seconds.
"""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.policies import CatchUp, Overlap, Policies
from tests import postgres_server
from tests.acceptance import checker, ledger_checker
from tests.acceptance.clocked import clocked
from tests.acceptance.every_second import EXECUTORS, LIMITS, EverySecond, until_all_ended, until_opened
from tests.acceptance.fake_time import FakeTime
from tests.acceptance.ledger_checker import SECOND, GapRow, Ledger, ledger_of
from tests.acceptance.processes import Workers, opened

HOUR = 3_600
A_BEAT = 5
CAP = 150
POLICIES = {
    "leaves": Policies(overlap=Overlap.ALLOW),
    "catches-up": Policies(overlap=Overlap.QUEUE, catch_up=CatchUp.FIRE_IMMEDIATELY, catch_up_cap=CAP),
    "spreads": Policies(overlap=Overlap.ALLOW, catch_up=CatchUp.SPREAD, catch_up_cap=CAP),
    "stands-for-all": Policies(overlap=Overlap.SKIP, catch_up=CatchUp.FIRE_IMMEDIATELY),
}


@dataclass(frozen=True, slots=True)
class Scale:
    outage_after_ms: int
    short_stop: float
    long_stop: float


SCALE = Scale(60_000, 20, 90) if os.environ.get("DULY_LONG_OUTAGES") else Scale(15_000, 5, 17)
ENVIRONMENT = {"DULY_OUTAGE_AFTER_MS": str(SCALE.outage_after_ms), "DULY_LOOKAHEAD_MS": "3000"}


@dataclass(frozen=True, slots=True)
class Stage:
    """Processes on a store, and the schedules that they keep."""

    database_url: str
    workers: Workers
    schedules: EverySecond

    async def until_opened_after(self, second: float, *, within: float = 20) -> None:
        """All schedules go on after an instant."""
        for name in POLICIES:
            await until_opened(self.database_url, name, int(second) + 1, within=within)

    async def end(self) -> dict[str, range]:
        planned = await self.schedules.pause()
        await until_all_ended(self.database_url, within=60)
        await self.workers.stop_all()
        return planned


async def set_stage(queue: Queue, database_url: str, workers: Workers) -> Stage:
    schedules = EverySecond(queue)
    for name, policies in POLICIES.items():
        await schedules.create(name, policies)
    stage = Stage(database_url, workers, schedules)
    await workers.all_ready()
    await stage.until_opened_after(queue.storage.clock.now() / SECOND)
    return stage


def require_laws(ledger: Ledger, planned: dict[str, range], workers: Workers) -> None:
    runs = checker.runs_of(workers.journal.read(), {})
    print(f"{len(ledger.rows)} rows, {len(runs)} entries, gaps {ledger.gaps}")
    checker.require(
        ledger_checker.lost(ledger, planned),
        ledger_checker.not_ended(ledger),
        ledger_checker.unlike_the_journal(ledger, runs, {}),
        ledger_checker.unlike_the_policies(ledger),
        checker.overlapping_in_lanes(runs),
    )


def require_missed(ledger: Ledger, slots: Sequence[range]) -> None:
    """These were missed by everybody, one outage after the other, and each made the best of it that it may."""
    assert _gaps(ledger, "leaves") == [_gap(missed, "outage") for missed in slots]
    capped = [_gap(missed[CAP:], "catch_up_cap") for missed in slots if len(missed) > CAP]
    assert _gaps(ledger, "catches-up") == _gaps(ledger, "spreads") == capped
    assert _gaps(ledger, "stands-for-all") == [_gap(missed[:-1], "superseded") for missed in slots]


def missed_of(ledger: Ledger) -> list[range]:
    """As the schedule says that leaves what it has missed."""
    return [range(gap.first_slot // SECOND, gap.last_slot // SECOND + 1) for gap in ledger.gaps_of("leaves")]


def _gaps(ledger: Ledger, name: str) -> list[GapRow]:
    return [gap._replace(schedule_id="") for gap in ledger.gaps_of(name)]


def _gap(missed: range, reason: str) -> GapRow:
    return GapRow("", missed[0] * SECOND, missed[-1] * SECOND, len(missed), reason)


# Time stands still.


@pytest.mark.req("OWN-06")
@pytest.mark.req("RISK-04")
@pytest.mark.req("GRAPH-10")
def test_the_only_timekeeper_is_stopped_and_its_silence_is_an_outage(database_url: str, tmp_path: Path) -> None:
    async def stop_and_go_on(workers: Workers) -> tuple[dict[str, range], tuple[float, float]]:
        async with opened(database_url, LIMITS) as queue:
            pid = workers.start_keeper(EXECUTORS)
            stage = await set_stage(queue, database_url, workers)
            workers.send(pid, signal.SIGSTOP)
            stopped_at = time.time()
            await asyncio.sleep(SCALE.long_stop)
            workers.send(pid, signal.SIGCONT)
            went_on_at = time.time()
            await stage.until_opened_after(went_on_at + 2)
            return await stage.end(), (stopped_at, went_on_at)

    with Workers(database_url, tmp_path, lease_ms=30_000, environment=ENVIRONMENT) as workers:
        planned, (stopped_at, went_on_at) = asyncio.run(stop_and_go_on(workers))

    ledger = asyncio.run(ledger_of(database_url))
    require_laws(ledger, planned, workers)
    [missed] = missed_of(ledger)
    assert missed[0] - 1 <= stopped_at <= missed[0] + 1
    assert missed[-1] <= went_on_at + 1 <= missed[-1] + 3
    require_missed(ledger, [missed])
    print(asyncio.run(ledger_checker.require_clean_audit(workers.environment)))


# The clock is set.


@pytest.mark.req("OWN-06")
@pytest.mark.req("CRON-06")
@pytest.mark.usefixtures("postgres_server_url")
def test_the_clock_is_set_forward_an_hour_and_back_and_no_slot_opens_twice(store: str, tmp_path: Path) -> None:
    """Forward, the hour was missed. Back, it is not opened again; when it has passed, time goes on."""

    async def travel(clock: FakeTime, url: str, workers: Workers) -> tuple[dict[str, range], tuple[float, float]]:
        async with opened(url, LIMITS, clock=clock.clock) as queue:
            workers.start_keeper(EXECUTORS)
            stage = await set_stage(queue, url, workers)
            left_at = clock.now()
            clock.set(HOUR)
            arrived_at = clock.now()
            await stage.until_opened_after(arrived_at + 2)
            clock.set(0)
            before = await ledger_of(url)
            await asyncio.sleep(A_BEAT)
            after = await ledger_of(url)
            assert {row.slot for row in after.of("leaves")} - {row.slot for row in before.of("leaves")} <= {
                *range(int(arrived_at), int(arrived_at) + A_BEAT + 6)
            }
            clock.set(HOUR)
            await stage.until_opened_after(clock.now() + 2)
            await queue.storage.clock.agree()
            return await stage.end(), (left_at, arrived_at)

    with clocked(store, tmp_path, ENVIRONMENT) as stage:
        planned, (left_at, arrived_at) = asyncio.run(travel(stage.clock, stage.database_url, stage.workers))
        ledger = asyncio.run(ledger_of(stage.database_url))
        print(asyncio.run(ledger_checker.require_clean_audit(stage.workers.environment)))
    require_laws(ledger, planned, stage.workers)
    [missed] = missed_of(ledger)
    # A server's clock is looked at with every heartbeat.
    assert left_at - 1 < missed[0] < left_at + A_BEAT + 1
    assert arrived_at - 1 < missed[-1] < arrived_at + A_BEAT + 1
    require_missed(ledger, [missed])


@pytest.mark.req("OWN-06")
@pytest.mark.req("CRON-06")
@pytest.mark.usefixtures("postgres_server_url")
def test_the_clock_is_set_back_an_hour_and_right_again_and_every_slot_fires_once(store: str, tmp_path: Path) -> None:
    async def travel(clock: FakeTime, url: str, workers: Workers) -> dict[str, range]:
        async with opened(url, LIMITS, clock=clock.clock) as queue:
            workers.start_keeper(EXECUTORS)
            stage = await set_stage(queue, url, workers)
            clock.set(-HOUR)
            await asyncio.sleep(A_BEAT + 2)
            opened_through = max(row.slot for row in (await ledger_of(url)).rows)
            assert opened_through < time.time() - 1, "while the clock was wrong, nothing was due"
            clock.set(0)
            await stage.until_opened_after(clock.now() + 2)
            await queue.storage.clock.agree()
            return await stage.end()

    with clocked(store, tmp_path, ENVIRONMENT) as stage:
        planned = asyncio.run(travel(stage.clock, stage.database_url, stage.workers))
        ledger = asyncio.run(ledger_of(stage.database_url))
        print(asyncio.run(ledger_checker.require_clean_audit(stage.workers.environment)))
    require_laws(ledger, planned, stage.workers)
    require_missed(ledger, [])


# The database goes away.


@pytest.mark.store("postgres")
@pytest.mark.req("OWN-06")
@pytest.mark.usefixtures("postgres_server_url")
def test_while_two_timekeepers_and_four_workers_live_their_database_stops_shortly_and_for_long(tmp_path: Path) -> None:
    """After a short stop slots are late, and all fire; a long one is an outage."""

    async def stop_twice(url: str, directory: Path, workers: Workers) -> tuple[dict[str, range], list[float]]:
        async with opened(url, LIMITS) as queue:
            start_cast(workers)
            stage = await set_stage(queue, url, workers)
            stops: list[float] = []
            for seconds in (SCALE.short_stop, SCALE.long_stop):
                stops.append(time.time())
                await asyncio.to_thread(postgres_server.stop_at_once, directory)
                await asyncio.sleep(seconds)
                await asyncio.to_thread(postgres_server.start_again, directory)
                stops.append(time.time())
                await stage.until_opened_after(time.time() + 2, within=30)
            return await stage.end(), stops

    with (
        postgres_server.running_postgres_in() as (directory, url),
        Workers(url, tmp_path, lease_ms=30_000, environment=ENVIRONMENT) as workers,
    ):
        planned, stops = asyncio.run(stop_twice(url, directory, workers))
        ledger = asyncio.run(ledger_of(url))
        print(asyncio.run(ledger_checker.require_clean_audit(workers.environment)))
    require_laws(ledger, planned, workers)
    [missed] = missed_of(ledger)
    assert stops[2] - 1 < missed[0] < stops[2] + 2
    assert stops[3] - 2 < missed[-1] < stops[3] + 4
    require_missed(ledger, [missed])
    late = [row for row in ledger.of("leaves") if stops[0] + 2 < row.slot < stops[1] - 2]
    assert late
    assert {row.status for row in late} == {"success"}


# Many at once.


@pytest.mark.req("CRON-11")
def test_two_timekeepers_and_four_workers_open_and_run_each_slot_once(database_url: str, tmp_path: Path) -> None:
    """One of the timekeepers stands still for a while: the other goes on."""

    async def keep_time(workers: Workers) -> dict[str, range]:
        async with opened(database_url, LIMITS) as queue:
            first, _ = start_cast(workers)
            stage = await set_stage(queue, database_url, workers)
            workers.send(first, signal.SIGSTOP)
            await asyncio.sleep(3)
            workers.send(first, signal.SIGCONT)
            await stage.until_opened_after(time.time() + 2)
            return await stage.end()

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        planned = asyncio.run(keep_time(workers))

    ledger = asyncio.run(ledger_of(database_url))
    require_laws(ledger, planned, workers)
    require_missed(ledger, [])
    runs = checker.runs_of(workers.journal.read())
    assert len({run.entered.key for run in runs}) == len(runs)
    assert {row.status for row in ledger.rows} <= {"success", "skipped"}
    print(asyncio.run(ledger_checker.require_clean_audit(workers.environment)))


def start_cast(workers: Workers) -> tuple[int, int]:
    for _ in range(4):
        workers.start(dict.fromkeys(EXECUTORS, 5))
    return workers.start_keeper({}), workers.start_keeper({})
