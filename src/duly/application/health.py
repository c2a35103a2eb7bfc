"""Whether this store is served as it should be, and how much there is of everything: reads, and writes nothing."""

from dataclasses import dataclass

from duly.application.pace import Pace
from duly.domain.errors import Unavailable
from duly.domain.health import ALIVE_WITHIN, OVERDUE_AFTER, Census, Readiness, Vitals, readiness_of
from duly.domain.instants import Instant
from duly.ports.storage import ReadOnlyStorage, Transaction


@dataclass(frozen=True, slots=True)
class Health:
    storage: ReadOnlyStorage
    pace: Pace

    async def readiness(self) -> Readiness:
        """Ready if the store answers, time is kept and no slot is overdue; while nothing is planned, if it answers."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Vitals:
            return await tx.health.vitals(overdue=Instant(now - OVERDUE_AFTER))

        try:
            vitals = await self.storage.read(work)
        except Unavailable as silence:
            return Readiness(is_ready=False, problems=(f"the store does not answer: {silence}",))
        return readiness_of(vitals, now=now, alive_within=min(ALIVE_WITHIN, self.pace.outage_after))

    async def census(self) -> Census:
        async def work(tx: Transaction) -> Census:
            return await tx.health.census()

        return await self.storage.read(work)
