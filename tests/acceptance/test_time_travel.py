"""Time stands still, jumps, or cannot be written down: what was missed is told from what is late, and nothing is lost.

By default a silence counts as an outage after 15 seconds, so that outages can be short; `DULY_LONG_OUTAGES=1` asks for
those of production: an outage after a minute, stops of 20 and of 90 seconds. Each scenario runs on both stores at once:
it mostly waits.
"""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.policies import CatchUp, Overlap, Policies
from tests import postgres_server
from tests.acceptance import checker, ledger_checker
from tests.acceptance.clocked import Clocked, clocked
from tests.acceptance.conftest import NewPlace, Place
from tests.acceptance.every_second import EXECUTORS, LIMITS, EverySecond, until_all_ended, until_opened
from tests.acceptance.fake_time import needs_fake_time
from tests.acceptance.ledger_checker import SECOND, Ledger, ledger_of
from tests.acceptance.processes import Workers, opened, side_by_side

HOUR = 3_600
# A transaction that waits for its database is given up after this long, and then begun with a new look at the clock.
PATIENCE = 10
CAP = 150
POLICIES = {
    "leaves": Policies(overlap=Overlap.ALLOW),
    "catches-up": Policies(overlap=Overlap.QUEUE, catch_up=CatchUp.FIRE_IMMEDIATELY, catch_up_cap=CAP),
    "spreads": Policies(overlap=Overlap.ALLOW, catch_up=CatchUp.SPREAD, catch_up_cap=CAP),
    "stands-for-all": Policies(overlap=Overlap.SKIP, catch_up=CatchUp.FIRE_IMMEDIATELY),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Of a database's stop, the last seconds may count as late: a transaction that waits keeps the time it began at."""

    outage_after: int
    beat_ms: int
    stop_of_a_process: float
    short_stop_of_a_database: float
    long_stop_of_a_database: float


SCALE = (
    Scale(outage_after=60, beat_ms=5_000, stop_of_a_process=90, short_stop_of_a_database=20, long_stop_of_a_database=90)
    if os.environ.get("DULY_LONG_OUTAGES")
    else Scale(
        outage_after=15, beat_ms=1_000, stop_of_a_process=17, short_stop_of_a_database=3, long_stop_of_a_database=27
    )
)
# A server's clock is looked at with every heartbeat, the machine's with every tick.
SEEN_WITHIN = {"sqlite": 2, "postgres": SCALE.beat_ms / 1_000 + 1}
ENVIRONMENT = {"DULY_OUTAGE_AFTER_MS": f"{SCALE.outage_after}000", "DULY_LOOKAHEAD_MS": "1000"}


@dataclass(frozen=True, slots=True)
class Stage:
    """Processes on a store, and the schedules that they keep."""

    database_url: str
    workers: Workers
    queue: Queue
    schedules: EverySecond

    async def until_opened_after(self, second: float, *, within: float = 20) -> None:
        """All schedules go on after an instant."""
        for name in POLICIES:
            await until_opened(self.database_url, name, int(second) + 1, within=within)

    async def end(self) -> Ledger:
        """Every law holds for what these have lived through."""
        await self.queue.storage.clock.agree()
        planned = await self.schedules.pause()
        ledger = await until_all_ended(self.database_url, within=60)
        await self.workers.stop_all()
        runs = checker.runs_of(self.workers.journal.read())
        print(f"{len(ledger.rows)} rows, {len(runs)} entries, gaps {[tuple(gap) for gap in ledger.gaps]}")
        print(await ledger_checker.require_clean_audit(self.workers.environment))
        checker.require(
            ledger_checker.lost(ledger, planned),
            ledger_checker.not_ended(ledger),
            ledger_checker.unlike_the_journal(ledger, runs, {}),
            ledger_checker.unlike_the_policies(ledger),
            checker.overlapping_in_lanes(runs),
        )
        return ledger


async def set_stage(queue: Queue, database_url: str, workers: Workers) -> Stage:
    schedules = EverySecond(queue)
    for name, policies in POLICIES.items():
        await schedules.create(name, policies)
    stage = Stage(database_url, workers, queue, schedules)
    await workers.all_ready()
    await stage.until_opened_after(queue.storage.clock.now() / SECOND)
    return stage


def start_cast(workers: Workers) -> tuple[int, int]:
    """Four workers and two timekeepers; answers the latter."""
    for _ in range(4):
        workers.start(dict.fromkeys(EXECUTORS, 5))
    return workers.start_keeper({}), workers.start_keeper({})


def missed_in(ledger: Ledger) -> range:
    """What was missed in the one outage there was: each schedule made of it what its policies say.

    It may be found out in pieces, each of which is caught up with by itself; there are few.
    """
    [gap] = ledger.gaps_of("leaves")
    assert gap.reason == "outage"
    missed = range(gap.first_slot // SECOND, gap.last_slot // SECOND + 1)
    rows = {name: [row.slot for row in ledger.of(name) if row.slot in missed] for name in POLICIES}
    assert {gap.reason for gap in ledger.gaps_of("stands-for-all")} == {"superseded"}
    assert 1 <= len(rows["stands-for-all"]) <= 5
    for name in ("catches-up", "spreads"):
        if len(missed) <= CAP:
            assert not ledger.gaps_of(name)
        else:
            [capped] = ledger.gaps_of(name)
            assert capped.reason == "catch_up_cap"
            assert CAP <= len(rows[name]) <= CAP + 5
    return missed


# Time stands still.


@pytest.mark.req("OWN-06")
@pytest.mark.req("RISK-04")
@pytest.mark.req("GRAPH-10")
@pytest.mark.req("CRON-11")
def test_a_timekeeper_is_stopped_which_is_an_outage_if_it_was_the_only_one(new_place: NewPlace) -> None:
    scenarios = (_the_only_one_is_stopped, _one_of_two_is_stopped)
    asyncio.run(side_by_side(*(scenario(new_place(store)) for scenario in scenarios for store in SEEN_WITHIN)))


async def _the_only_one_is_stopped(place: Place) -> None:
    with Workers(place.database_url, place.folder, lease_ms=30_000, environment=ENVIRONMENT) as workers:
        async with opened(place.database_url, LIMITS) as queue:
            pid = workers.start_keeper(EXECUTORS)
            stage = await set_stage(queue, place.database_url, workers)
            workers.send(pid, signal.SIGSTOP)
            stopped_at = time.time()
            await asyncio.sleep(SCALE.stop_of_a_process)
            workers.send(pid, signal.SIGCONT)
            went_on_at = time.time()
            await stage.until_opened_after(went_on_at + 2)
            missed = missed_in(await stage.end())
    assert missed[0] - 1 <= stopped_at <= missed[0] + 1
    assert missed[-1] <= went_on_at + 1 <= missed[-1] + 3


async def _one_of_two_is_stopped(place: Place) -> None:
    """With four workers. Both keep time before and after, and each slot is opened and run once."""
    with Workers(place.database_url, place.folder, lease_ms=30_000, environment=ENVIRONMENT) as workers:
        async with opened(place.database_url, LIMITS) as queue:
            first, _ = start_cast(workers)
            stage = await set_stage(queue, place.database_url, workers)
            workers.send(first, signal.SIGSTOP)
            await asyncio.sleep(3)
            workers.send(first, signal.SIGCONT)
            await stage.until_opened_after(time.time() + 2)
            ledger = await stage.end()
        runs = checker.runs_of(workers.journal.read())
    assert not ledger.gaps
    assert len({run.entered.key for run in runs}) == len(runs)
    assert {row.status for row in ledger.rows} <= {"success", "skipped"}


# The clock is set.


@pytest.mark.req("OWN-06")
@pytest.mark.req("CRON-06")
@pytest.mark.usefixtures("postgres_server_url")
@needs_fake_time
def test_the_clock_is_set_back_and_forth_by_an_hour_and_no_slot_opens_twice(tmp_path: Path) -> None:
    """Set back and right again, nothing is missed. Set forward, the hour is; then back, it is not opened again."""

    with (
        clocked("sqlite", tmp_path / "sqlite", ENVIRONMENT) as sqlite,
        clocked("postgres", tmp_path / "postgres", ENVIRONMENT) as postgres,
    ):
        asyncio.run(side_by_side(_travel(sqlite, SEEN_WITHIN["sqlite"]), _travel(postgres, SEEN_WITHIN["postgres"])))


async def _travel(place: Clocked, seen_within: float) -> None:
    async with opened(place.database_url, LIMITS, clock=place.clock.clock) as queue:
        place.workers.start_keeper(EXECUTORS, beat_ms=SCALE.beat_ms)
        stage = await set_stage(queue, place.database_url, place.workers)
        await _back_and_right_again(place, stage, seen_within)
        left_at, arrived_at = await _forward_and_back(place, stage, seen_within)
        missed = missed_in(await stage.end())
    assert left_at - 1 < missed[0] < left_at + seen_within
    assert arrived_at - 1 < missed[-1] < arrived_at + seen_within


async def _back_and_right_again(place: Clocked, stage: Stage, seen_within: float) -> None:
    place.clock.set(-HOUR)
    await asyncio.sleep(seen_within + 2)
    ledger = await ledger_of(place.database_url)
    assert max(row.slot for row in ledger.rows) < time.time() - 1, "while the clock was wrong, nothing was due"
    place.clock.set(0)
    await stage.until_opened_after(place.clock.now() + 1)
    assert not (await ledger_of(place.database_url)).gaps


async def _forward_and_back(place: Clocked, stage: Stage, seen_within: float) -> tuple[float, float]:
    left_at = place.clock.now()
    place.clock.set(HOUR)
    arrived_at = place.clock.now()
    await stage.until_opened_after(arrived_at + 1)
    place.clock.set(0)
    await asyncio.sleep(seen_within)
    rows = (await ledger_of(place.database_url)).of("leaves")
    assert not [row for row in rows if left_at + seen_within < row.slot < arrived_at - 1]
    place.clock.set(HOUR)
    await stage.until_opened_after(place.clock.now() + 1)
    return left_at, arrived_at


# The database goes away.


@pytest.mark.store("postgres")
@pytest.mark.req("OWN-06")
@pytest.mark.req("CRON-11")
@pytest.mark.usefixtures("postgres_server_url")
def test_while_two_timekeepers_and_four_workers_live_their_database_stops_shortly_and_for_long(tmp_path: Path) -> None:
    """After a short stop slots are late, and all fire; a long one is an outage."""

    async def stop_twice(url: str, directory: Path, workers: Workers) -> None:
        async with opened(url, LIMITS) as queue:
            start_cast(workers)
            stage = await set_stage(queue, url, workers)
            began, ended = await _stop(stage, directory, SCALE.short_stop_of_a_database)
            late = [row for row in (await ledger_of(url)).of("leaves") if began + 1 < row.slot < ended - 1]
            assert late
            assert not (await ledger_of(url)).gaps
            began, ended = await _stop(stage, directory, SCALE.long_stop_of_a_database)
            missed = missed_in(await stage.end())
        assert began - 1 < missed[0] < began + 2
        assert ended - 2 - PATIENCE < missed[-1] < ended + 4

    with (
        postgres_server.running_postgres_in() as (directory, url),
        Workers(url, tmp_path, lease_ms=30_000, environment=ENVIRONMENT) as workers,
    ):
        asyncio.run(stop_twice(url, directory, workers))


async def _stop(stage: Stage, directory: Path, seconds: float) -> tuple[float, float]:
    began = time.time()
    await asyncio.to_thread(postgres_server.stop_at_once, directory)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(postgres_server.start_again, directory)
    ended = time.time()
    await stage.until_opened_after(ended + 1, within=30)
    return began, ended
