"""What a timekeeper does, one transaction each: open, catch up, revoke, keep alive, and look what comes next."""

from collections.abc import Sequence
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
from duly.ports.storage import Storage, Transaction

OPEN_BATCH = 500


@dataclass(frozen=True, slots=True)
class Agenda:
    """When the next slot fires, the next missed one is due, the next claim is to be revoked."""

    fire_at: Instant | None
    arrears_at: Instant | None
    revoke_at: Instant | None


class OpeningFailed(Exception):
    """Something about these schedules cannot be written; what it was is the cause."""

    def __init__(self, schedules: Sequence[ScheduleId]) -> None:
        super().__init__(f"slots of {len(schedules)} schedules could not be opened")
        self.schedules = schedules


@dataclass(frozen=True, slots=True)
class Timekeeping:
    storage: Storage
    dice: Dice
    places: Places
    pace: Pace

    async def agenda(self) -> Agenda:
        async def work(tx: Transaction) -> Agenda:
            return Agenda(
                await tx.schedules.next_fire_at(),
                await tx.ledger.next_arrears_at(),
                await tx.ledger.next_revocation_at(),
            )

        return await self.storage.read(work)

    async def open_due(self, *, most: int = OPEN_BATCH) -> Opened:
        """Opens what is due of as many schedules, of those first that have waited longest."""
        drawn = self._draw()
        taken: list[Schedule] = []

        async def work(tx: Transaction) -> Opened:
            taken[:] = await tx.schedules.due(drawn.now, most)
            return await open_schedules(tx, taken, drawn, self.pace)

        try:
            opened = await self.storage.transact(work)
        except Unavailable:
            raise
        except Exception as error:
            raise OpeningFailed([schedule.id for schedule in taken]) from error
        return opened if len(taken) < most else replace(opened, more=True)

    async def break_down(self, schedule_id: ScheduleId, error: BaseException) -> Opened:
        """A schedule whose slots cannot be written must not stand in the way of the others."""
        drawn = self._draw()

        async def work(tx: Transaction) -> Opened:
            batch = Batch(drawn, self.pace)
            schedule = await tx.schedules.lock(schedule_id)
            if schedule is not None and schedule.state is ScheduleState.ACTIVE:
                batch.break_down(schedule, error)
                await batch.save(tx)
            return Opened(decisions=batch.decisions, schedules=1, more=True)

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
