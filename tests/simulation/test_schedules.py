"""Schedules under every kind of bad luck: minutes, days or weeks around nights on which clocks change."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import apsw
import pytest

from duly.application import openings, schedules
from duly.application.pace import Pace
from duly.application.timekeeping import Timekeeping
from duly.domain.coverage import Outage, outages_between
from duly.domain.decisions import Decision
from duly.domain.instants import SECOND, Instant
from duly.domain.schedules import Schedule
from duly.ports.storage import Transaction
from duly.storage.statements import Statement
from tests.simulation.laws import LawBroken
from tests.simulation.machine import Mutate
from tests.simulation.schedule_world import ScheduleWorld

# A seed of these takes as long as some twenty of the queue's.
SEEDS = max(int(os.environ.get("DULY_SEEDS", "1000")) // 20, 1)
# Seeds of one batch live around the same night, whose slots are found once.
BATCH = 10
MUTANT_SEEDS = 40

Guard = Callable[[pytest.MonkeyPatch], Mutate | None]


def _batches() -> Iterator[range]:
    for first in range(0, SEEDS, BATCH):
        yield range(first, min(first + BATCH, SEEDS))


@pytest.mark.req("GRAPH-08")
@pytest.mark.req("GRAPH-10")
@pytest.mark.req("CRON-02")
@pytest.mark.req("CRON-03")
@pytest.mark.req("CRON-04")
@pytest.mark.req("CRON-05")
@pytest.mark.req("CRON-06")
@pytest.mark.req("CRON-11")
@pytest.mark.req("DEC-010")
@pytest.mark.req("OWN-01")
@pytest.mark.req("OWN-06")
@pytest.mark.parametrize("seeds", list(_batches()), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_every_slot_meets_one_fate_for_the_right_reason_whatever_happens(seeds: range) -> None:
    for seed in seeds:
        try:
            ScheduleWorld(seed).run()
        except LawBroken as broken:
            raise AssertionError(f"seed {seed}: {broken}") from broken


def test_the_same_seed_gives_the_same_trace() -> None:
    for seed in range(3):
        traces = []
        for _ in range(2):
            world = ScheduleWorld(seed)
            world.run()
            traces.append(world.trace)

        assert traces[0] == traces[1]
        assert len(traces[0]) > 1_000


# A guard that nobody misses proves nothing: each is taken away in turn, and the laws must notice.


def _without_the_slot_index(_: pytest.MonkeyPatch) -> Mutate:
    return lambda _, database: _drop(database, "schedule_runs_one_per_slot")


def _without_remembering_what_was_opened(_: pytest.MonkeyPatch) -> Mutate:
    return _rewriting("advance_schedules", r"SET opened_through = \?\d+", "SET opened_through = opened_through")


def _with_changes_in_force_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the clock was set back, and slots after now are open already."""
    _change_after(monkeypatch, lambda _, now: now // SECOND)


def _with_changes_in_force_from_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    _change_after(monkeypatch, lambda schedule, _: schedule.created_at // SECOND)


def _with_revisions_recorded_from_creation(_: pytest.MonkeyPatch) -> Mutate:
    created_at = r"(SELECT created_at FROM schedules WHERE id = \1)"
    return _rewriting("insert_revision", r"VALUES \((\?\d+), (\?\d+), \?\d+,", rf"VALUES (\1, \2, {created_at},")


def _without_opening_before_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object, schedule: Schedule, *__: object) -> tuple[Schedule, Sequence[Decision]]:
        return schedule, ()

    monkeypatch.setattr(schedules, "open_before_change", nothing)


def _without_looking_what_is_in_flight(_: pytest.MonkeyPatch) -> Mutate:
    return _rewriting("runs_in_flight", r"$", " AND 0")


def _without_coverage_in_the_opening_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    async def outages_until(tx: Transaction, _: Instant, pace: Pace, *, since: Instant, **__: Any) -> list[Outage]:
        return outages_between(await tx.ledger.coverage(since), outage_after=pace.outage_after)

    monkeypatch.setattr(openings, "outages_until", outages_until)
    monkeypatch.setattr(schedules, "outages_until", outages_until)


def _without_a_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object) -> None:
        return None

    monkeypatch.setattr(Timekeeping, "keep_alive", nothing)


def _without_ending_runs_with_their_jobs(_: pytest.MonkeyPatch) -> Mutate:
    return _rewriting("end_runs", r"$", " AND 0")


def _change_after(monkeypatch: pytest.MonkeyPatch, second: Callable[[Schedule, Instant], int]) -> None:
    def changed(self: Schedule, *, at: Instant, **changes: Any) -> Schedule:
        through = second(self, at)
        revised = replace(self, revision=self.revision + 1, opened_through=through, updated_at=at, **changes)
        return revised.planned()

    monkeypatch.setattr(Schedule, "changed", changed)


def _drop(database: apsw.Connection, index: str) -> None:
    database.execute(f"DROP INDEX {index}")


def _rewriting(name: str, pattern: str, text: str) -> Mutate:
    def mutate(statements: dict[str, Statement], _: apsw.Connection) -> None:
        sql, count = re.subn(pattern, text, statements[name].sql.strip(), count=1)
        assert count, f"{name} has no {pattern}"
        statements[name] = replace(statements[name], sql=sql)

    return mutate


NOTICED: dict[Guard, str] = {
    _without_the_slot_index: "ran twice",
    _without_remembering_what_was_opened: "decided again|is open through",
    _with_changes_in_force_from_now: "came to",
    _with_changes_in_force_from_creation: "came to",
    _with_revisions_recorded_from_creation: "came to",
    _without_opening_before_a_change: "fell between revisions",
    _without_looking_what_is_in_flight: "opened beside|took the place|nobody",
    _without_coverage_in_the_opening_transaction: "was missed, and yet opened|was missed too",
    _without_a_heart: "but coverage ends at",
    _without_ending_runs_with_their_jobs: "a ledger row waits for a job that is gone",
}


@pytest.mark.parametrize("guard", NOTICED, ids=lambda guard: guard.__name__.strip("_"))
def test_a_missing_guard_is_noticed(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate = guard(monkeypatch)
    for seed in range(MUTANT_SEEDS):
        try:
            ScheduleWorld(seed, mutate=mutate).run()
        except LawBroken as broken:
            assert re.search(NOTICED[guard], str(broken)), broken  # noqa: PT017 - by the law that it guards
            return
    pytest.fail(f"{MUTANT_SEEDS} seeds saw nothing")
