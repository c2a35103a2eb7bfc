"""Runs of schedules that no cadence planned: by hand, and for fires of the past."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from duly.application.batch import MOST_ROWS, Batch, Drawn, draw
from duly.application.pace import Pace
from duly.application.places import Places
from duly.application.schedule_checks import living_schedule, require_target
from duly.application.schedule_looks import ScheduleLooks
from duly.domain.backfills import MOST_BACKFILLED, Backfill, backfill_of
from duly.domain.instants import SECOND
from duly.domain.runs import Run, RunKind
from duly.domain.schedules import Schedule
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.storage import Transaction

LONGEST_KEY = 64


@dataclass(frozen=True, slots=True)
class ScheduleRuns(ScheduleLooks):
    dice: Dice
    places: Places
    pace: Pace

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
        """What `backfill` would run: how many, and which."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Backfill:
            schedule = await living_schedule(tx, schedule_id, owner)
            return backfill_of(schedule.cadence, start, end, cap=cap, now=now)

        return await self.storage.read(work)

    async def backfill(
        self,
        schedule_id: str,
        *,
        owner: str | None,
        start: datetime,
        end: datetime,
        cap: int = 100,
        key: str | None = None,
    ) -> Sequence[Run]:
        """Runs the schedule as it is now for fires of the past, oldest first, in its lane; refused beyond the cap.

        The same key again answers the same runs, and adds those of a longer span.
        """
        own_key = self._own_key(RunKind.BACKFILL, key)
        drawn = self.draw(rows=whole_number_of(cap, field="cap", least=1, most=MOST_BACKFILLED))

        async def work(tx: Transaction) -> Sequence[Run]:
            schedule = await living_schedule(tx, schedule_id, owner, lock=True)
            asked = backfill_of(schedule.cadence, start, end, cap=cap, now=drawn.now)
            asked.require_fit()
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
