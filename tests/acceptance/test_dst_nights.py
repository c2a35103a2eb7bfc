"""Nights in which clocks change, lived through by a real process whose clock runs fast: the slots are those of the law.

`DULY_DST_STEP_SECONDS` is how far the clock moves at once, every 20 ms; small steps make for long and quiet nights,
which Postgres, whose clock is looked at with every heartbeat, lives through, too.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from duly import cron
from duly.bootstrap import Queue
from duly.domain.policies import Overlap, Policies
from duly.domain.schedules import Target
from tests import brute_force
from tests.acceptance import checker, ledger_checker
from tests.acceptance.clocked import Clocked, clocked
from tests.acceptance.every_second import EXECUTORS, LIMITS, OWNER, WIDE, until_all_ended
from tests.acceptance.fake_time import needs_fake_time
from tests.acceptance.journal import boottime
from tests.acceptance.ledger_checker import SECOND, Ledger
from tests.acceptance.processes import opened, side_by_side

STEP_SECONDS = int(os.environ.get("DULY_DST_STEP_SECONDS") or 60)
STEP_EVERY = 0.02
# However fast its clock runs, nobody is away: a slot may be late, but it is not missed.
ENVIRONMENT = {"DULY_TICK_MS": "10", "DULY_OUTAGE_AFTER_MS": "86400000"}
EXPRESSIONS = {
    "wildcard": "30 * * * *",
    "quarters": "*/15 * * * *",
    "seconds": "15 10,40 * * * *",
    "stepped": "*/20 30 0-3,23 * * *",
}


@dataclass(frozen=True, slots=True)
class Night:
    """`fixed` is what the clock jumps over or shows twice; `runs` is when it runs, by hand; `turns` is the change."""

    zone: str
    turns: str
    fixed: str
    runs: str

    @property
    def start(self) -> int:
        return _second(self.turns) - 5_400

    @property
    def end(self) -> int:
        return _second(self.turns) + 5_400

    def planned(self) -> dict[str, list[int]]:
        """Watched minute by minute, or second by second; strictly after the start, through the end."""
        minutes = brute_force.watch(self.zone, self.start, self.end + 1, 60)
        seconds = brute_force.watch(self.zone, self.start, self.end + 1, 1)
        return {
            name: [
                fire
                for fire in brute_force.fires(expression, seconds if len(expression.split()) == 6 else minutes)
                if fire > self.start
            ]
            for name, expression in self.expressions.items()
        }

    @property
    def expressions(self) -> dict[str, str]:
        return EXPRESSIONS | {"fixed": self.fixed, "fixed-second": f"30 {self.fixed}"}


NIGHTS = {
    "New York": (
        Night("America/New_York", "2025-03-09T07:00Z", "30 2 * * *", "2025-03-09T07:00Z"),
        Night("America/New_York", "2025-11-02T06:00Z", "30 1 * * *", "2025-11-02T05:30Z"),
    ),
    "Berlin": (
        Night("Europe/Berlin", "2025-03-30T01:00Z", "30 2 * * *", "2025-03-30T01:00Z"),
        Night("Europe/Berlin", "2025-10-26T01:00Z", "30 2 * * *", "2025-10-26T00:30Z"),
    ),
    "Lord Howe": (
        Night("Australia/Lord_Howe", "2025-10-04T15:30Z", "15 2 * * *", "2025-10-04T15:30Z"),
        Night("Australia/Lord_Howe", "2025-04-05T15:00Z", "45 1 * * *", "2025-04-05T14:45Z"),
    ),
    "São Paulo": (
        Night("America/Sao_Paulo", "2018-11-04T03:00Z", "30 0 * * *", "2018-11-04T03:00Z"),
        Night("America/Sao_Paulo", "2018-02-18T02:00Z", "30 23 * * *", "2018-02-18T01:30Z"),
    ),
    "Cairo": (
        Night("Africa/Cairo", "2025-04-24T22:00Z", "30 0 * * *", "2025-04-24T22:00Z"),
        Night("Africa/Cairo", "2025-10-30T21:00Z", "30 23 * * *", "2025-10-30T20:30Z"),
    ),
}
# Ten processes on files of their own get along; ten servers would not.
PARTS = {"sqlite": ("sqlite", [night for both in NIGHTS.values() for night in both])}
if STEP_SECONDS <= 10:
    PARTS |= {f"postgres-{zone}": ("postgres", list(both)) for zone, both in NIGHTS.items()}


def _second(written: str) -> int:
    return int(datetime.fromisoformat(written).timestamp())


@pytest.mark.parametrize("nights", NIGHTS.values(), ids=NIGHTS)
def test_the_law_agrees_with_what_was_worked_out_by_hand(nights: tuple[Night, Night]) -> None:
    for night in nights:
        runs = _second(night.runs)
        assert night.planned()["fixed"] == [runs]
        # In a gap it is made up for at the gap's end; elsewhere its own second counts.
        assert night.planned()["fixed-second"] == [runs if runs == _second(night.turns) else runs + 30]


@pytest.mark.req("CRON-02")
@pytest.mark.req("DEC-010")
@needs_fake_time
@pytest.mark.parametrize(("store", "nights"), PARTS.values(), ids=PARTS)
def test_both_nights_of_each_zone_have_exactly_the_slots_of_the_law(
    store: str, nights: Sequence[Night], tmp_path: Path
) -> None:
    with ExitStack() as stages:
        clocks = [stages.enter_context(clocked(store, tmp_path / str(n), ENVIRONMENT)) for n in range(len(nights))]
        asyncio.run(side_by_side(*(_live_through(night, clock) for night, clock in zip(nights, clocks, strict=True))))


async def _live_through(night: Night, stage: Clocked) -> None:
    stage.clock.set_to(night.start + 0.5)
    ledger = await _keep_time(night, stage)
    await ledger_checker.require_clean_audit(stage.workers.environment)
    _require_the_law(night, ledger, checker.runs_of(stage.workers.journal.read()))


async def _keep_time(night: Night, stage: Clocked) -> Ledger:
    clock, url, workers = stage.clock, stage.database_url, stage.workers
    async with opened(url, LIMITS, clock=clock.clock) as queue:
        for name, expression in night.expressions.items():
            await _create(queue, name, expression, night.zone)
        workers.start_keeper(EXECUTORS)
        await workers.all_ready()
        while clock.now() < night.end:
            await asyncio.sleep(STEP_EVERY)
            clock.set_to(min(clock.now() + STEP_SECONDS, night.end + 0.5))
        await _nothing_is_due(url, night.end, within=30)
        ledger = await until_all_ended(url, within=30)
    await workers.stop_all()
    return ledger


async def _create(queue: Queue, name: str, expression: str, zone: str) -> None:
    await queue.schedules.create(
        schedule_id=name,
        owner=OWNER,
        cadence=cron(expression, tz=zone),
        target=Target(kind="work", pool=WIDE),
        policies=Policies(overlap=Overlap.ALLOW),
    )


async def _nothing_is_due(url: str, second: int, *, within: float) -> None:
    deadline = boottime() + within
    while True:
        [[(fire_at,)]] = await checker.looked_up(url, ["SELECT min(fire_at) FROM schedules"])
        if fire_at > second * SECOND:
            return
        assert boottime() < deadline, f"not within {within:g} s: all is opened that is due"
        await asyncio.sleep(0.05)


def _require_the_law(night: Night, ledger: Ledger, runs: list[checker.Run]) -> None:
    late = timedelta(microseconds=max(row.opened_at - row.fire_at for row in ledger.rows))
    print(f"{night.zone} {night.turns}: {len(ledger.rows)} slots, at most {late} late by the fast clock")
    for name, slots in night.planned().items():
        assert slots, name
        assert ledger.slots_of(name) == slots, name
    checker.require(ledger_checker.missed(ledger), ledger_checker.unlike_the_journal(ledger, runs, {}))
    assert {row.status for row in ledger.rows} == {"success"}
    assert len(runs) == len(ledger.rows)
