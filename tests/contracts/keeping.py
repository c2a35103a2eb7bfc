"""Short words for tests in which time is kept: schedules, ticks, and what the ledger says afterwards."""

from itertools import takewhile
from typing import Any

from duly.application.tally import Tally
from duly.bootstrap import Queue
from duly.domain.cadence import Cadence, every
from duly.domain.decisions import Decision
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import Policies
from duly.domain.runs import Arrears, Gap, Run, RunKind
from duly.domain.schedules import Schedule, ScheduleState, Target
from tests.contracts.clocks import MORNING
from tests.contracts.world import WIDE, World

MINUTELY = every("1m")
MINUTE = 60


def at(minutes: float) -> Instant:
    """So long after the test's morning."""
    return Instant(MORNING + int(minutes * 60) * SECOND)


class Keeping:
    """One schedule's life under a clock that the test moves; `heard` are the decisions that were told."""

    def __init__(self, world: World, queue: Queue | None = None) -> None:
        self.world = world
        world.is_audited = True
        self.queue = queue or world.queue
        self.schedules = self.queue.schedules
        self.keeper = self.queue.timekeeper()
        self.heard: list[Decision] = []
        assert isinstance(self.queue.telemetry, Tally)
        self.tally = self.queue.telemetry
        self.tally.say = self.heard.append

    async def schedule(
        self,
        schedule_id: str = "s",
        *,
        cadence: Cadence = MINUTELY,
        owner: str = "ann",
        target: Target | None = None,
        **policies: Any,
    ) -> Schedule:
        return await self.schedules.create(
            schedule_id=schedule_id,
            owner=owner,
            cadence=cadence,
            target=target or Target(kind=schedule_id, pool=WIDE),
            policies=Policies(**policies),
        )

    async def tick(self) -> None:
        await self.keeper.tick()

    async def at(self, minutes: float) -> None:
        """Time passes, with a heartbeat often enough, and what is due by then is opened."""
        await self.alive_until(minutes)
        await self.tick()

    async def alive_until(self, minutes: float) -> None:
        while (left := at(minutes) - self.world.clock.now()) > 0:
            self.world.clock.advance(micros=min(left, 30 * SECOND))
            await self.queue.timekeeping.keep_alive()

    async def outage_until(self, minutes: float) -> None:
        """Time passes, and nobody keeps it."""
        self.world.clock.advance(micros=at(minutes) - self.world.clock.now())

    async def get(self, schedule_id: str = "s") -> Schedule:
        return await self.schedules.get(schedule_id, owner=None)

    async def runs(self, schedule_id: str = "s") -> list[Run]:
        """Oldest slot first."""
        return list(reversed(await self.schedules.runs(schedule_id, owner=None, most=1_000)))

    async def fates(self, schedule_id: str = "s") -> list[str]:
        """`minute: status reason` of each row, oldest slot first."""
        return [
            " ".join(
                [
                    f"{(run.scheduled_for - MORNING) / (60 * SECOND):g}:",
                    run.status,
                    *([run.reason] if run.reason else []),
                ]
            )
            for run in await self.runs(schedule_id)
        ]

    async def gaps(self, schedule_id: str = "s") -> list[Gap]:
        return await self.world.transact(lambda tx: tx.ledger.gaps(ScheduleId(schedule_id)))

    async def missed(self, schedule_id: str = "s") -> list[tuple[float, float, int, str]]:
        """First and last minute, count and reason of each gap."""
        return [
            ((gap.first - MORNING) / (60 * SECOND), (gap.last - MORNING) / (60 * SECOND), gap.count, str(gap.reason))
            for gap in await self.gaps(schedule_id)
        ]

    async def owed(self, schedule_id: str = "s") -> list[Arrears]:
        return await self.world.transact(lambda tx: tx.ledger.arrears(ScheduleId(schedule_id)))

    async def accounts_for_every_slot(self, schedule_id: str = "s") -> None:
        """The slot law, from the revisions alone: each planned slot has one row, or lies in one gap, or is owed.

        Whatever it has names the revision that planned it.
        """
        planned = await self._planned(schedule_id)
        rows = [(run.scheduled_for, run.revision) for run in await self.runs(schedule_id) if run.kind is RunKind.SLOT]
        spans = [(gap.first, gap.last, gap.revision, gap.count) for gap in await self.gaps(schedule_id)]
        spans += [(owed.next, owed.last, owed.revision, owed.count) for owed in await self.owed(schedule_id)]
        for first, last, revision, count in spans:
            held = [slot for slot in planned if first <= slot[0] <= last and slot[1] == revision]
            assert len(held) == count
            rows += held
        assert sorted(rows) == planned

    async def _planned(self, schedule_id: str) -> list[tuple[Instant, int]]:
        """Every slot through `opened_through`, with the number of the revision that was in force for it."""
        revisions = await self.schedules.revisions(schedule_id, owner=None)
        ((opened,),) = await self.world.rows(f"SELECT opened_through FROM schedules WHERE id = '{schedule_id}'")
        ends = [revision.effective_from for revision in revisions[1:]] + [opened // SECOND]
        planned: list[tuple[Instant, int]] = []
        for revision, end in zip(revisions, ends, strict=True):
            assert revision.effective_from <= end
            if revision.state is ScheduleState.ACTIVE:
                slots = _slots(revision.cadence, after=revision.effective_from, through=end)
                planned += [(slot, revision.number) for slot in slots]
        return planned


def _slots(cadence: Cadence, *, after: int, through: int) -> list[Instant]:
    fires = takewhile(lambda second: second <= through, cadence.seconds_after(after))
    return [Instant(second * SECOND) for second in fires]
