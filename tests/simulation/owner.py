"""What owners of schedules do, drawn by chance: define, edit, pause, resume, delete, run by hand, backfill."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

from duly.application.jobs import Jobs
from duly.application.pools import Pools
from duly.application.schedules import Schedules
from duly.domain.errors import DulyError
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import SECOND
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import Target
from tests.seasons import Season, Timetable, draw_timetable
from tests.simulation.laws import require
from tests.simulation.lives import Life, Wish
from tests.simulation.record import Extra, Record
from tests.simulation.rhythm import Rhythm

OWNER = "ann"
NAMES = tuple(f"schedule {letter}" for letter in "abcdef")
POOLS: Mapping[str, int] = {"wide": 8, "narrow": 1}


class Owner:
    """Says to the record what it is about to ask for; the record sees whether it was done."""

    def __init__(
        self,
        *,
        schedules: Schedules,
        jobs: Jobs,
        pools: Pools,
        record: Record,
        random: Random,
        rhythm: Rhythm,
        season: Season,
    ) -> None:
        self._schedules = schedules
        self._jobs = jobs
        self._pools = pools
        self._record = record
        self._random = random
        self._rhythm = rhythm
        self._season = season
        self._clock = schedules.storage.clock

    async def act(self) -> None:
        """One thing or another; a refusal is an answer, too."""
        life = self._record.life(self._random.choice(NAMES))
        acts: list[Callable[[Life], Awaitable[None]]] = [self._define, self._edit, self._edit, self._pause, self._pause]
        acts += [self._resume, self._resume, self._delete, self._run_now, self._run_now, self._backfill, self._backfill]
        acts += [self._cancel, self._meddle_with_a_pool]
        act = self._random.choice(acts) if life.is_there else self._define
        with suppress(DulyError):
            await act(life)
        self._record.wish = None

    # Changes

    async def _define(self, life: Life) -> None:
        timetable, policies = self._timetable(), self._policies()
        plan: dict[str, Any] = {
            "owner": OWNER,
            "cadence": timetable.cadence(),
            "target": self._target(),
            "policies": policies,
        }
        self._wish(life, timetable=timetable, policies=policies, state="active")
        if self._random.random() < 0.5:
            await self._schedules.upsert(life.id, **plan)
        else:
            await self._schedules.create(schedule_id=life.id, **plan)
        require(life.is_there and life.now.state == "active", f"{life.id} was defined, and is not there")

    async def _edit(self, life: Life) -> None:
        timetable = self._timetable() if self._random.random() < 0.6 else None
        policies = self._policies() if self._random.random() < 0.6 else None
        target = self._target() if self._random.random() < 0.3 else None
        self._wish(life, timetable=timetable, policies=policies)
        cadence = None if timetable is None else timetable.cadence()
        await self._schedules.edit(
            life.id, owner=OWNER, cadence=cadence, policies=policies, target=target, withdraw=self._withdraws()
        )
        term = life.now
        require(policies in (None, term.policies), f"{life.id} was edited, and is not so")
        require(timetable is None or cadence == term.timetable.cadence(), f"{life.id} was edited, and is not so")

    async def _pause(self, life: Life) -> None:
        self._wish(life, state="paused")
        await self._schedules.pause(life.id, owner=OWNER, withdraw=self._withdraws())
        require(life.now.state == "paused", f"{life.id} was paused, and is not")

    async def _resume(self, life: Life) -> None:
        self._wish(life, state="active")
        await self._schedules.resume(life.id, owner=OWNER)
        require(life.now.state == "active", f"{life.id} was resumed, and is not active")

    async def _delete(self, life: Life) -> None:
        self._wish(life, state="deleted")
        await self._schedules.delete(life.id, owner=OWNER, withdraw=self._withdraws())
        require(not life.is_there, f"{life.id} was deleted, and is there")

    async def pause_all(self) -> None:
        for life in self._record.lives.values():
            if life.is_there:
                self._wish(life, state="paused")
                await self._schedules.pause(life.id, owner=OWNER)

    def _wish(self, life: Life, **changes: Any) -> None:
        self._record.wish = Wish(schedule=life.id, second=self._now(), **changes)

    # Runs by hand, and what else people do

    async def _run_now(self, life: Life) -> None:
        key = self._key()
        known = life.extra.get(f"manual:{key}", {self._now()})
        self._record.wish = Extra(life.id, f"manual:{key}", frozenset(known))
        run = await self._schedules.run_now(life.id, owner=OWNER, key=key)
        require(run.scheduled_for // SECOND in life.extra[f"manual:{key}"], f"{life.id} ran by hand, and did not")

    async def _backfill(self, life: Life) -> None:
        start, end = sorted(self._now() - self._random.randrange(600) * self._rhythm.scale for _ in range(2))
        key = self._key()
        slots = frozenset(life.now.timetable.slots(start - 1, end))
        self._record.wish = Extra(life.id, f"backfill:{key}", slots)
        first, last = datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)
        runs = await self._schedules.backfill(life.id, owner=OWNER, cap=40, key=key, start=first, end=last)
        require({run.scheduled_for // SECOND for run in runs} >= slots, f"{life.id} was not backfilled with all")
        require(slots <= life.extra[f"backfill:{key}"], f"{life.id} was not backfilled with all")

    async def _cancel(self, life: Life) -> None:
        runs = await self._schedules.runs(life.id, owner=OWNER, most=5)
        jobs = [run.job_id for run in runs if run.job_id is not None and not run.status.is_terminal]
        if jobs:
            await self._jobs.cancel(JobId(self._random.choice(jobs)), reason="changed my mind")

    async def _meddle_with_a_pool(self, _: Life) -> None:
        pool = PoolName(self._random.choice(list(POOLS)))
        await self._random.choice([self._pools.pause, self._pools.drain, self._pools.open, self._pools.open])(pool)

    async def open_pools(self) -> None:
        for pool in POOLS:
            await self._pools.open(PoolName(pool))

    # Chance

    def _now(self) -> int:
        return self._clock.now() // SECOND

    def _key(self) -> str:
        """Few, so that some come again."""
        return f"key {self._random.randrange(2)}"

    def _withdraws(self) -> bool:
        return self._random.random() < 0.2

    def _timetable(self) -> Timetable:
        return draw_timetable(self._random, self._season, self._now())

    def _policies(self) -> Policies:
        draw = self._random
        return Policies(
            overlap=draw.choice(list(Overlap)),
            catch_up=draw.choice(list(CatchUp)),
            catch_up_cap=draw.choice([1, 3, 20, 1_000]),
            jitter_ms=self._rhythm.millis(draw.choice([0, 0, 0, 0.5, 4, 20])),
        )

    def _target(self) -> Target:
        draw, millis = self._random, self._rhythm.millis
        return Target(
            kind=draw.choice(["plain", "slow", "slow", "stubborn"]),
            pool=PoolName(draw.choice(["wide", "wide", "narrow"])),
            priority=draw.choice([0, 0, 1]),
            retry=RetryPolicy(max_attempts=draw.randint(1, 3), backoff_ms=millis(draw.choice([0, 1, 5]))),
            timeout_ms=draw.choice([None, None, millis(15)]),
        )
