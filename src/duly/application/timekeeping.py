"""What a timekeeper does, one transaction each: open, catch up, revoke, keep alive, and look what comes next."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from duly.application.batch import Batch, Drawn, draw
from duly.application.openings import Opened, catch_up, open_schedules
from duly.application.pace import Pace
from duly.application.places import Places
from duly.application.stopping import revoke_due
from duly.domain.coverage import Span
from duly.domain.errors import Unavailable
from duly.domain.ids import ScheduleId
from duly.domain.instants import Instant
from duly.domain.schedules import Schedule, ScheduleState
from duly.ports.dice import Dice
from duly.ports.ledger import Agenda
from duly.ports.storage import Storage, Transaction

OPEN_BATCH = 500


class OpeningFailed(Exception):
    """What was decided about these schedules could not be written; nothing was."""

    def __init__(self, schedules: Sequence[Schedule], cause: Exception) -> None:
        super().__init__(f"slots of {len(schedules)} schedules could not be written: {type(cause).__name__}: {cause}")
        self.schedules = [schedule.id for schedule in schedules]
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Timekeeping:
    storage: Storage
    dice: Dice
    places: Places
    pace: Pace

    async def agenda(self) -> Agenda:
        return await self.storage.read(lambda tx: tx.ledger.agenda())

    async def open_due(self) -> Opened:
        """Opens what is due, of the schedules first that have waited longest."""
        opened = await self._open(lambda tx, now: tx.schedules.due(now, OPEN_BATCH))
        return opened if opened.schedules < OPEN_BATCH else replace(opened, more=True)

    async def open_one(self, schedule_id: ScheduleId) -> Opened:
        """Opens what is due of one schedule."""

        async def find(tx: Transaction, now: Instant) -> Sequence[Schedule]:
            schedule = await tx.schedules.lock(schedule_id)
            return [schedule] if schedule is not None and (schedule.fire_at or now + 1) <= now else []

        return await self._open(find)

    async def _open(self, find: Callable[[Transaction, Instant], Awaitable[Sequence[Schedule]]]) -> Opened:
        drawn = self._draw()
        found: list[Schedule] = []

        async def work(tx: Transaction) -> Opened:
            found[:] = await find(tx, drawn.now)
            return await open_schedules(tx, found, drawn, self.pace)

        try:
            return await self.storage.transact(work)
        except Unavailable:
            raise
        except Exception as error:
            raise OpeningFailed(found, error) from error

    async def break_down(self, schedule_id: ScheduleId, error: Exception) -> Opened:
        """Takes a schedule out of the way of the others."""
        drawn = self._draw()

        async def work(tx: Transaction) -> Opened:
            batch = Batch(drawn, self.pace)
            schedule = await tx.schedules.lock(schedule_id)
            if schedule is not None and schedule.state is ScheduleState.ACTIVE:
                batch.break_down(schedule, error)
                await batch.save(tx)
            return Opened(decisions=batch.decisions)

        return await self.storage.transact(work)

    async def catch_up(self) -> Opened:
        drawn = self._draw()

        async def work(tx: Transaction) -> Opened:
            return await catch_up(tx, drawn, self.pace)

        return await self.storage.transact(work)

    async def revoke_due(self) -> int:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> int:
            return await revoke_due(tx, now)

        return await self.storage.transact(work)

    async def keep_alive(self) -> Span:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Span:
            return await tx.ledger.keep_alive(now, outage_after=self.pace.outage_after)

        return await self.storage.transact(work)

    def _draw(self) -> Drawn:
        return draw(self.storage.clock, self.dice, self.places)
