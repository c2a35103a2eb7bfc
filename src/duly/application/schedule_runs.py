"""Runs of schedules that no cadence planned: by hand, and for fires of the past."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from duly.application.batch import MOST_ROWS, Batch, Drawn, draw
from duly.application.estimates import estimate_in
from duly.application.graph_grants import GraphGrants
from duly.application.pace import Pace
from duly.application.places import Places
from duly.application.schedule_checks import living_schedule, require_target
from duly.application.schedule_looks import ScheduleLooks
from duly.domain.amounts import Amount
from duly.domain.backfills import MOST_BACKFILLED, Backfill, backfill_of
from duly.domain.estimates import Estimate
from duly.domain.instants import SECOND
from duly.domain.runs import Run, RunKind
from duly.domain.schedules import Schedule, ScheduleChanged
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.storage import Transaction

LONGEST_KEY = 64


@dataclass(frozen=True, slots=True)
class ScheduleRuns(ScheduleLooks):
    dice: Dice
    places: Places
    pace: Pace
    graphs: GraphGrants

    async def run_now(self, schedule_id: str, *, owner: str | None, key: str | None = None) -> Run:
        """A run by hand, paused or not, in the schedule's lane. The same key again answers the same run."""
        own_key = self._own_key(RunKind.MANUAL, key)
        drawn = self.draw(rows=1)

        async def work(tx: Transaction) -> Run:
            schedule = await living_schedule(tx, schedule_id, owner, lock=True)
            runs = await tx.ledger.by_key(schedule.id, own_key)
            if not runs:
                runs = await self._add(tx, schedule, [drawn.now // SECOND], drawn, kind=RunKind.MANUAL, own_key=own_key)
            return runs[0]

        return await self.storage.transact(work)

    async def preview_backfill(
        self, schedule_id: str, *, owner: str | None, start: datetime, end: datetime, cap: int = 100
    ) -> Backfill:
        """What `backfill` would run: how many, which, and at what cost."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Backfill:
            schedule = await living_schedule(tx, schedule_id, owner)
            asked = backfill_of(schedule.cadence, start, end, cap=cap, now=now)
            cost = await self._estimate(tx, schedule, len(asked.instants))
            return replace(asked, revision=schedule.revision, cost=cost)

        return await self.storage.read(work)

    async def _estimate(self, tx: Transaction, schedule: Schedule, runs: int) -> Estimate:
        work = (schedule.target.kind, schedule.target.payload)
        prices = self.graphs.prices
        return await estimate_in(tx, [work] * runs, prices, owner=schedule.owner, schedules=[schedule.id])

    async def backfill(
        self,
        schedule_id: str,
        *,
        owner: str | None,
        start: datetime,
        end: datetime,
        cap: int = 100,
        max_cost: Amount | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Sequence[Run]:
        """Runs the schedule as it is now for fires of the past, oldest first, in its lane; refused beyond the cap.

        Also refused if more than `max_cost` would be held for them, or if it is no longer at the revision that a
        preview showed. The same key again answers the same runs, and adds those of a longer span.
        """
        own_key = self._own_key(RunKind.BACKFILL, key)
        drawn = self.draw(rows=whole_number_of(cap, field="cap", least=1, most=MOST_BACKFILLED))

        async def work(tx: Transaction) -> Sequence[Run]:
            schedule = await living_schedule(tx, schedule_id, owner, lock=True)
            await _require_as_shown(tx, schedule, expected_revision, own_key)
            asked = backfill_of(schedule.cadence, start, end, cap=cap, now=drawn.now)
            asked.require_fit()
            if max_cost is not None:
                (await self._estimate(tx, schedule, asked.count)).require_within(max_cost)
            slots = [instant // SECOND for instant in asked.instants]
            return await self._add(tx, schedule, slots, drawn, kind=RunKind.BACKFILL, own_key=own_key)

        return await self.storage.transact(work)

    async def _add(
        self, tx: Transaction, schedule: Schedule, slots: Sequence[int], drawn: Drawn, *, kind: RunKind, own_key: str
    ) -> list[Run]:
        await require_target(tx, schedule.target, schedule.owner, taking=True)
        batch = Batch(drawn, self.pace)
        batch.add(schedule, slots, kind=kind, own_key=own_key)
        await batch.save(tx)
        return await tx.ledger.by_key(schedule.id, own_key)

    def _own_key(self, kind: RunKind, key: str | None) -> str:
        key = self.dice.new_id("key") if key is None else text_of(key, field="key", longest=LONGEST_KEY)
        return f"{kind}:{key}"

    def draw(self, *, rows: int = MOST_ROWS) -> Drawn:
        return draw(self.storage.clock, self.dice, self.places, rows=rows)


async def _require_as_shown(tx: Transaction, schedule: Schedule, expected: int | None, own_key: str) -> None:
    """What was begun under its key is told again, whatever the schedule has become."""
    if expected in (None, schedule.revision) or await tx.ledger.by_key(schedule.id, own_key):
        return
    raise ScheduleChanged(schedule.id, expected=expected, found=schedule.revision)
