"""Whatever is done to a schedule and whatever happens to the time, each planned slot has exactly one fate."""

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from duly import InvalidInput, cron, every
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import Target, UnknownSchedule
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, Hand, World

CADENCES = [every("7s"), every("1m"), every("150s"), cron("*/2 * * * *"), cron("*/20 * * * * *", "Europe/Berlin")]
STEPS = 60


@pytest.mark.req("GRAPH-08")
@pytest.mark.req("GRAPH-19")
@pytest.mark.parametrize("seed", range(12))
async def test_every_planned_slot_has_exactly_one_fate(world: World, seed: int) -> None:
    life = _Life(world, Random(seed), await world.hand())
    await life.define()

    for _ in range(STEPS):
        await life.step()
    await life.keeping.tick()

    await life.keeping.accounts_for_every_slot()


class _Life:
    def __init__(self, world: World, random: Random, hand: Hand) -> None:
        self.world = world
        self.random = random
        self.hand = hand
        self.keeping = Keeping(world)

    async def step(self) -> None:
        steps = [self.live, self.live, self.live, self.outage, self.set_clock, self.work, self.work]
        steps += [self.define, self.edit, self.pause, self.resume, self.delete, self.run_now, self.backfill]
        with suppress(UnknownSchedule, InvalidInput):
            await self.random.choice(steps)()

    def _policies(self) -> Policies:
        return Policies(
            overlap=self.random.choice(list(Overlap)),
            catch_up=self.random.choice(list(CatchUp)),
            catch_up_cap=self.random.choice([3, 1_000]),
            jitter_ms=self.random.choice([0, 0, 40_000]),
        )

    async def define(self) -> None:
        target = Target(kind="work", pool=WIDE, retry=RetryPolicy(max_attempts=2, backoff_ms=5_000))
        await self.keeping.schedules.upsert(
            "s", owner="ann", cadence=self.random.choice(CADENCES), target=target, policies=self._policies()
        )

    async def edit(self) -> None:
        changes: list[dict[str, Any]] = [{"cadence": self.random.choice(CADENCES)}, {"policies": self._policies()}]
        await self.keeping.schedules.edit(
            "s", owner="ann", withdraw=self.random.random() < 0.3, **self.random.choice(changes)
        )

    async def pause(self) -> None:
        await self.keeping.schedules.pause("s", owner="ann")

    async def resume(self) -> None:
        await self.keeping.schedules.resume("s", owner="ann")

    async def delete(self) -> None:
        await self.keeping.schedules.delete("s", owner="ann")

    async def run_now(self) -> None:
        await self.keeping.schedules.run_now("s", owner="ann", key=self.random.choice([None, "a", "b"]))

    async def backfill(self) -> None:
        end = Instant(self.world.clock.now() - self.random.randrange(100) * SECOND)
        start = Instant(end - self.random.randrange(300) * SECOND)
        await self.keeping.schedules.backfill("s", owner="ann", start=moment_of(start), end=moment_of(end), cap=50)

    async def live(self) -> None:
        for _ in range(self.random.randrange(6)):
            self.world.clock.advance(self.random.choice([0.3, 1, 10, 25]))
            await self.world.queue.timekeeping.keep_alive()
            if self.random.random() < 0.7:
                await self.keeping.tick()

    async def outage(self) -> None:
        self.world.clock.advance(self.random.choice([30, 70, 400]))
        if self.random.random() < 0.5:
            await self.world.queue.timekeeping.keep_alive()

    async def set_clock(self) -> None:
        self.world.clock.step(self.random.choice([-120, -20, 20, 200]))

    async def work(self) -> None:
        await self.world.queue.jobs.stage()
        jobs = await self.hand.claim(self.random.randrange(1, 4))
        for job in jobs:
            await (self.hand.fail(job) if self.random.random() < 0.3 else self.hand.finish(job))
