"""One list of actions, one clock: schedules answer alike on both stores, and end with the same rows but for ids."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests import brute_force
from tests.contracts.dice import CountingDice
from tests.contracts.schedule_model import SECOND, Plan
from tests.contracts.schedule_player import Player
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import World
from tests.seasons import Night, Season, draw_timetable

pytestmark = pytest.mark.store("postgres")

SEEDS = range(4 * int(os.environ.get("DULY_TEST_EFFORT", "1")))
SEASON = Season(Night("America/New_York", brute_force.epoch(2026, 11, 1, 6), 1), 60)
START = SEASON.night.second - 6 * 3_600
NAMES = ("a", "b", "c")
# Their order of insertion may differ where two schedules fire at once, and with it the ids and places they are given.
TABLES = {
    "schedules": "id, state, state_reason, revision, opened_through, next_run_at, fire_at, last_run_at, updated_at",
    "schedule_revisions": "schedule_id, number, effective_from, state, recorded_at, cron, every_s, once_at, overlap",
    "schedule_runs": "schedule_id, scheduled_for, own_key, kind, revision, fire_at, opened_at, status, reason,"
    " attempt_count, started_at, completed_at, error_message",
    "schedule_gaps": "schedule_id, first_slot, last_slot, slots, reason, revision, recorded_at",
    "schedule_arrears": "schedule_id, first_slot, next_slot, last_slot, slots, due_at, every_us, revision",
    "coverage": "started_at, alive_at",
    "jobs": "kind, key, lane, pool, state, attempt",
    "finished_jobs": "kind, key, lane, pool, status, error, attempt, started_at, finished_at",
}
Trace = list[tuple[str, Any]]


@pytest.mark.req("CRON-03")
@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("seed", SEEDS)
def test_schedules_on_both_stores_answer_alike_and_end_with_the_same_rows(
    shared_postgres: SharedPostgres, seed: int
) -> None:
    shared_postgres.empty()

    on_sqlite, sqlite_rows = asyncio.run(_play(World("sqlite", ":memory:"), seed))
    on_postgres, postgres_rows = asyncio.run(_play(World("postgres", shared_postgres.url), seed))

    for step, (here, there) in enumerate(zip(on_sqlite, on_postgres, strict=True)):
        assert here == there, f"step {step} of seed {seed}"
    assert sqlite_rows == postgres_rows
    assert len(sqlite_rows["schedule_runs"]) > 5, "the actions did too little"


async def _play(world: World, seed: int) -> tuple[Trace, dict[str, list[tuple[Any, ...]]]]:
    world.dice = CountingDice()
    player = Player(world)
    await player.begin(START * SECOND)
    try:
        playing = Playing(player, random.Random(seed))
        trace = [await playing.act() for _ in range(150)]
        await player.tick()
        await world.keeps_the_laws()
        assert await player.findings() == []
        return trace, {
            table: sorted(await world.rows(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in TABLES.items()
        }
    finally:
        await world.close()


class Playing:
    """Draws the same actions for both stores, as long as both answer alike."""

    def __init__(self, player: Player, dice: random.Random) -> None:
        self.player = player
        self.dice = dice

    async def act(self) -> tuple[str, Any]:
        acts: list[Callable[[], Awaitable[Any]]] = [
            *[self.keep_time] * 6,
            *[self.work] * 4,
            *[self.create] * 4,
            self.edit,
            self.set_state,
            self.run_now,
            self.backfill,
            self.nobody_keeps_time,
            self.set_the_clock,
            self.lose_someone,
        ]
        act = self.dice.choice(acts)
        return act.__name__, await act()

    async def create(self) -> Any:
        return await self.player.create(self._name(), self._plan())

    async def edit(self) -> Any:
        return await self.player.edit(self._name(), self._plan(), withdraw=self._flip())

    async def set_state(self) -> Any:
        state = self.dice.choice(["active", "active", "paused", "deleted"])
        return await self.player.set_state(self._name(), state, withdraw=self._flip() and state != "active")

    async def run_now(self) -> Any:
        return await self.player.run_now(self._name(), self.dice.choice("kl"))

    async def backfill(self) -> Any:
        return await self.player.backfill(self._name(), self.dice.choice([0, 1_200, 7_200]), self.dice.choice("kl"))

    async def keep_time(self) -> None:
        await self.player.advance(self.dice.choice([1, 7, 20, 55]) * 60 * SECOND)
        await self.player.beat()
        await self.player.tick()

    async def nobody_keeps_time(self) -> None:
        await self.player.advance(self.dice.choice([10, 61, 200]) * 60 * SECOND)

    async def set_the_clock(self) -> None:
        self.player.step(self.dice.choice([-200, -61, -5, 5, 61, 200]) * 60 * SECOND)

    async def work(self) -> Any:
        claimed = await self.player.claim()
        ending = [run for run in sorted(self.player.claims) if self.dice.random() < 0.6]
        return claimed, [(run, await self.player.finish(run, succeeds=self._flip())) for run in ending]

    async def lose_someone(self) -> None:
        match self.dice.randrange(3):
            case 0:
                self.player.restart()
            case 1:
                await self.player.lose_worker()
            case _:
                await self.player.reboot()

    def _name(self) -> str:
        return self.dice.choice(NAMES)

    def _flip(self) -> bool:
        return self.dice.random() < 0.5

    def _plan(self) -> Plan:
        return Plan(
            draw_timetable(self.dice, SEASON, self.player.world.clock.now() // SECOND),
            self.dice.choice(["allow", "skip", "queue", "queue_one", "replace"]),
            self.dice.choice(["none", "fire_immediately", "spread"]),
            self.dice.choice([1, 3, 1_000]),
        )
