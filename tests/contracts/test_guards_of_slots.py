"""Each guard of the slot law, taken away: the law must be seen to break, or nobody would notice that it is gone."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from duly import every
from duly.domain.decisions import Decision
from duly.domain.instants import SECOND, Instant
from duly.domain.schedules import Schedule
from tests.contracts.keeping import Keeping, at
from tests.contracts.ledgers import found
from tests.contracts.world import World

Scenario = Callable[[World], Awaitable[None]]


async def _a_pause_after_a_slot_was_due(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.alive_until(1.5)
    await keeping.schedules.pause("s", owner="ann")
    await keeping.accounts_for_every_slot()


async def _an_edit_after_the_clock_was_set_back(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(3)
    world.clock.step(-150)
    await keeping.schedules.edit("s", owner="ann", cadence=every("30s"))
    await keeping.at(4)
    await keeping.accounts_for_every_slot()


async def _a_schedule_that_forgot_what_it_opened(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(1)
    await world.rows(f"UPDATE schedules SET opened_through = {at(0)}, next_run_at = {at(1)}, fire_at = {at(1)}")
    await keeping.tick()
    await keeping.accounts_for_every_slot()


@pytest.mark.parametrize(
    "scenario",
    [
        _a_pause_after_a_slot_was_due,
        _an_edit_after_the_clock_was_set_back,
        _a_schedule_that_forgot_what_it_opened,
    ],
)
async def test_with_every_guard_in_place_each_slot_has_one_fate(world: World, scenario: Scenario) -> None:
    await scenario(world)


async def _breaks(scenario: Scenario, world: World) -> None:
    """The test's own count sees it, and so does the audit."""
    with pytest.raises(AssertionError):
        await scenario(world)
    assert await found(world)
    world.is_audited = False


async def test_a_change_that_does_not_open_first_loses_a_slot(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(tx: object, schedule: Schedule, *_: object) -> tuple[Schedule, Sequence[Decision]]:
        return schedule, ()

    monkeypatch.setattr("duly.application.schedules.open_before_change", nothing)

    await _breaks(_a_pause_after_a_slot_was_due, world)


async def test_a_revision_in_force_from_now_on_plans_a_slot_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(self: Schedule, *, at: Instant, **changes: Any) -> Schedule:
        revised = replace(self, revision=self.revision + 1, opened_through=at // SECOND, updated_at=at, **changes)
        return revised.planned()

    monkeypatch.setattr(Schedule, "changed", changed)

    await _breaks(_an_edit_after_the_clock_was_set_back, world)


async def test_without_its_index_a_slot_has_two_rows(world: World) -> None:
    await world.rows("DROP INDEX schedule_runs_one_per_slot")
    try:
        await _breaks(_a_schedule_that_forgot_what_it_opened, world)
    finally:
        await world.rows("DELETE FROM jobs")
        await world.rows("DELETE FROM schedule_runs")
        await world.rows(
            "CREATE UNIQUE INDEX schedule_runs_one_per_slot ON schedule_runs (schedule_id, scheduled_for, own_key)"
        )
