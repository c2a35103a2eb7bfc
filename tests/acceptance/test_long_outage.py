"""Thirty days without anybody: one gap, no more memory than on any day, and what is due now does not wait for it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from duly import cron, every
from duly.bootstrap import Queue
from duly.domain.cadence import Cadence
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.schedules import Target
from tests.acceptance import checker, ledger_checker
from tests.acceptance.clocked import Clocked, clocked
from tests.acceptance.every_second import (
    AT_ONCE_AND_ALWAYS,
    EXECUTORS,
    LIMITS,
    OWNER,
    WIDE,
    until_all_ended,
    until_opened,
)
from tests.acceptance.fake_time import needs_fake_time
from tests.acceptance.ledger_checker import SECOND, Ledger, ledger_of
from tests.acceptance.processes import opened, side_by_side

DAY, MINUTE = 86_400, 60
AWAY = 30 * DAY
CAP = 400
MOST_MEMORY_MORE_KB = 16_384
# While missed slots are caught up; it takes some milliseconds, unless others keep the machine busy.
USUALLY_LATE, LATEST = SECOND, 5 * SECOND


@dataclass(frozen=True, slots=True)
class Kept:
    cadence: Cadence
    seconds: int
    policies: Policies


KEPT = {
    "leaves": Kept(cron("* * * * *"), MINUTE, Policies(overlap=Overlap.ALLOW)),
    "catches-up": Kept(
        every("1m"),
        MINUTE,
        Policies(overlap=Overlap.ALLOW, catch_up=CatchUp.FIRE_IMMEDIATELY, catch_up_cap=CAP),
    ),
    "stands-for-all": Kept(every("1m"), MINUTE, Policies(overlap=Overlap.SKIP, catch_up=CatchUp.FIRE_IMMEDIATELY)),
    "live": Kept(every("1s"), 1, Policies(overlap=Overlap.ALLOW)),
    "live-cron": Kept(cron("* * * * * *"), 1, Policies(overlap=Overlap.ALLOW)),
}
LIVE = ("live", "live-cron")
MISSED_FOR = {
    "leaves": ["outage"],
    "catches-up": ["catch_up_cap"],
    "stands-for-all": ["superseded"],
    "live": ["outage"],
    "live-cron": ["outage"],
}


@dataclass(frozen=True, slots=True)
class Lived:
    ledger: Ledger
    planned: Mapping[str, range]
    came_back_at: float
    memory_before_kb: int
    memory_after_kb: int


@pytest.mark.req("CRON-04")
@pytest.mark.req("GRAPH-10")
@pytest.mark.req("RISK-04")
@pytest.mark.usefixtures("postgres_server_url")
@needs_fake_time
def test_after_thirty_days_away_there_is_one_gap_and_nothing_that_is_due_now_waits(tmp_path: Path) -> None:
    with (
        clocked("sqlite", tmp_path / "sqlite", {}) as sqlite,
        clocked("postgres", tmp_path / "postgres", {}) as postgres,
    ):
        asyncio.run(side_by_side(_be_away(sqlite), _be_away(postgres)))


async def _be_away(stage: Clocked) -> None:
    lived = await _live(stage)
    print(await ledger_checker.require_clean_audit(stage.workers.environment))
    _require_bounded(lived, checker.runs_of(stage.workers.journal.read()))


def _require_bounded(lived: Lived, runs: Sequence[checker.Run]) -> None:
    ledger, came_back = lived.ledger, int(lived.came_back_at)
    late = sorted(row.opened_at - row.fire_at for name in LIVE for row in _since(ledger, name, came_back + 2))
    print(f"{lived.memory_before_kb} kB before, {lived.memory_after_kb} kB after; late by {late} µs; {ledger.gaps}")
    checker.require(
        ledger_checker.lost(ledger, lived.planned),
        ledger_checker.not_ended(ledger),
        ledger_checker.unlike_the_journal(ledger, runs, {}),
        ledger_checker.unlike_the_policies(ledger),
    )
    assert {name: [gap.reason for gap in ledger.gaps_of(name)] for name in KEPT} == MISSED_FOR
    [left], [capped] = ledger.gaps_of("leaves"), ledger.gaps_of("catches-up")
    assert AWAY // MINUTE - 1 <= left.slots <= AWAY // MINUTE + 1
    assert capped.slots == left.slots - CAP
    assert late[len(late) // 2] < USUALLY_LATE
    assert late[-1] < LATEST
    assert lived.memory_after_kb < lived.memory_before_kb + MOST_MEMORY_MORE_KB


async def _live(stage: Clocked) -> Lived:
    """A short life thirty days ago, and another one now."""
    clock, url, workers = stage.clock, stage.database_url, stage.workers
    clock.set(-AWAY)
    async with opened(url, LIMITS, clock=clock.clock) as queue:
        begun = {name: await _create(queue, name, kept) for name, kept in KEPT.items()}
        pid = workers.start_keeper(EXECUTORS)
        await until_opened(url, "live-cron", int(clock.now()) + 3, within=30)
        memory_before = _peak_memory_kb(pid)
        await workers.stop_all()

        clock.set(0)
        came_back_at = clock.now()
        pid = workers.start_keeper(EXECUTORS)
        await workers.all_ready()
        await until_opened(url, "live-cron", int(came_back_at) + 6, within=30)
        await queue.storage.clock.agree()
        planned = {name: await _pause(queue, name, begun[name]) for name in KEPT}
        await until_all_ended(url, within=60)
        memory_after = _peak_memory_kb(pid)
    await workers.stop_all()
    return Lived(await ledger_of(url), planned, came_back_at, memory_before, memory_after)


async def _create(queue: Queue, name: str, kept: Kept) -> int:
    target = Target(kind="work", pool=WIDE, retry=AT_ONCE_AND_ALWAYS)
    made = await queue.schedules.create(
        schedule_id=name, owner=OWNER, cadence=kept.cadence, target=target, policies=kept.policies
    )
    return made.created_at // SECOND


async def _pause(queue: Queue, name: str, begun: int) -> range:
    paused = await queue.schedules.pause(name, owner=OWNER)
    seconds = KEPT[name].seconds
    return range(begun // seconds * seconds + seconds, paused.updated_at // SECOND + 1, seconds)


def _since(ledger: Ledger, name: str, second: int) -> list[ledger_checker.LedgerRow]:
    return [row for row in ledger.of(name) if row.slot >= second]


def _peak_memory_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
