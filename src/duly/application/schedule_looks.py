"""What owners see of their schedules; nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.application.schedule_checks import known_schedule, living_schedule
from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import Instant
from duly.domain.runs import Run
from duly.domain.schedules import Fire, Revision, Schedule
from duly.domain.texts import text_of, whole_number_of
from duly.ports.storage import Storage, Transaction

_MOST_LISTED = 1_000
MOST_NUMBERED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ScheduleLooks:
    storage: Storage

    async def get(self, schedule_id: str, *, owner: str | None) -> Schedule:
        return await self.storage.read(lambda tx: living_schedule(tx, schedule_id, owner))

    async def upcoming(self, schedule_id: str, *, owner: str | None, most: int = 5) -> Sequence[Fire]:
        """The next slots and when they fire; none, unless the schedule is active."""
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        return (await self.get(schedule_id, owner=owner)).upcoming(most)

    async def revisions(self, schedule_id: str, *, owner: str | None) -> Sequence[Revision]:
        """First to last, of a deleted schedule too."""

        async def work(tx: Transaction) -> Sequence[Revision]:
            return await tx.schedules.revisions((await known_schedule(tx, schedule_id, owner)).id)

        return await self.storage.read(work)

    async def runs(
        self, schedule_id: str, *, owner: str | None, before: Instant | None = None, most: int = 100
    ) -> Sequence[Run]:
        """The newest slots first, of a deleted schedule too; `before` is the slot of the last one seen.

        Runs that share a slot come together, so a page may be shorter than asked while more are to come.
        """
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        if before is not None:
            whole_number_of(before, field="before", least=-MOST_NUMBERED, most=MOST_NUMBERED)

        async def work(tx: Transaction) -> Sequence[Run]:
            schedule = await known_schedule(tx, schedule_id, owner)
            return _whole_slots(await tx.ledger.of_schedule(schedule.id, before=before, most=most + 1), most)

        return await self.storage.read(work)

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Schedule]:
        """In order of id, tombstones left out; `after` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        last = None if after is None else ScheduleId(text_of(after, field="after"))

        async def work(tx: Transaction) -> Sequence[Schedule]:
            return await tx.schedules.of_owner(whose, after=last, most=most)

        return await self.storage.read(work)


def _whole_slots(runs: list[Run], most: int) -> Sequence[Run]:
    """The page of at most so many runs, ending where a slot's runs end: the next one begins with an earlier slot."""
    if len(runs) <= most:
        return runs
    page = [run for run in runs if run.scheduled_for > runs[most].scheduled_for]
    return page or runs[:most]
