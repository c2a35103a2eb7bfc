"""Proves from what is stored that no slot was lost or doubled: reads, and writes nothing."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from duly.application.windows import Windows, merged
from duly.domain.audit import GRACE, AuditedRun, Judgement, Missing, Stray, Timekeeping, Verdict
from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.ids import JobId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.schedules import Schedule, UnknownSchedule
from duly.ports.audit import Among
from duly.ports.storage import ReadOnlyStorage, Transaction

SCHEDULES_AT_ONCE = 200
WINDOW = 1_000
JOBS_AT_ONCE = 10_000
MOST_STRAYS = 1_000
EVER = Instant(-(2**63))

Entry = AuditedRun | Missing
Strays = Mapping[ScheduleId, Sequence[Stray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Schedules are judged by one snapshot each, so that time going on meanwhile changes nothing."""

    storage: ReadOnlyStorage
    grace: Micros = GRACE
    outage_after: Micros = OUTAGE_AFTER

    async def verdicts(
        self, schedule_id: ScheduleId | None = None, *, since: Instant = EVER, owner: str | None = None
    ) -> AsyncIterator[Verdict]:
        """Of every schedule there ever was, in order of their ids, or of one; slots up to `since` are left out.

        An `owner` is told of its own alone.
        """
        strays = await self._strays()
        if schedule_id is not None:
            yield await self._one(schedule_id, since, strays, owner)
            return
        after: ScheduleId | None = None
        while page := await self._page(after, since, strays, owner):
            for verdict in page:
                yield verdict
            after = page[-1].schedule.id

    async def _one(self, schedule_id: ScheduleId, since: Instant, strays: Strays, owner: str | None) -> Verdict:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> list[Verdict]:
            schedule = await tx.schedules.get(schedule_id)
            if schedule is None or owner not in (None, schedule.owner):
                raise UnknownSchedule(schedule_id)
            return await self._judged(tx, [schedule], since, strays, now)

        return (await self.storage.read(work))[0]

    async def _page(self, after: ScheduleId | None, since: Instant, strays: Strays, owner: str | None) -> list[Verdict]:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> list[Verdict]:
            schedules = await tx.audit.schedules(after=after, most=SCHEDULES_AT_ONCE, owner=owner)
            return await self._judged(tx, schedules, since, strays, now) if schedules else []

        return await self.storage.read(work)

    async def _judged(
        self, tx: Transaction, schedules: Sequence[Schedule], since: Instant, strays: Strays, now: Instant
    ) -> list[Verdict]:
        spans = await tx.ledger.coverage(EVER)
        timekeeping = Timekeeping.from_spans(spans, now=now, grace=self.grace, outage_after=self.outage_after)
        ledger = _Ledger(tx, Among(schedules[0].id, schedules[-1].id), since)
        verdicts = []
        for schedule in schedules:
            judgement = Judgement(
                schedule,
                [revision async for revision in ledger.revisions.of(schedule.id)],
                timekeeping=timekeeping,
                now=now,
                since=since // SECOND,
            )
            async for entry in ledger.entries_of(schedule.id):
                if isinstance(entry, Missing):
                    judgement.missing(entry)
                else:
                    judgement.row(entry)
            for stray in strays.get(schedule.id, ()):
                judgement.stray(stray)
            verdicts.append(judgement.verdict())
        return verdicts

    async def _strays(self) -> Strays:
        """Found by looking at every finished job, since nothing leads from a run to a job that it does not name."""
        found: dict[ScheduleId, list[Stray]] = defaultdict(list)
        count = 0
        after: JobId | None = None
        while count < MOST_STRAYS:
            strays, after = await self.storage.read(partial(_next_strays, after))
            if after is None:
                break
            count += len(strays)
            for stray in strays:
                found[stray.schedule_id].append(stray)
        return found


class _Ledger:
    """What is recorded of some schedules, each of which is asked for once, in order."""

    def __init__(self, tx: Transaction, among: Among, since: Instant) -> None:
        read = tx.audit
        self.revisions = Windows(
            lambda last: read.revisions(among, after=last, most=WINDOW), lambda revision: revision.schedule_id
        )
        self._runs = Windows(
            lambda last: read.runs(among, since=since, after=last, most=WINDOW), lambda audited: audited.run.schedule_id
        )
        self._gaps = Windows(
            lambda last: read.gaps(among, since=since, after=last, most=WINDOW), lambda gap: gap.schedule_id
        )
        self._arrears = Windows(
            lambda last: read.arrears(among, since=since, after=last, most=WINDOW), lambda owed: owed.schedule_id
        )

    def entries_of(self, schedule_id: ScheduleId) -> AsyncIterator[Entry]:
        return merged(self._missing(schedule_id), self._owed(schedule_id), self._runs.of(schedule_id), key=_place)

    async def _missing(self, schedule_id: ScheduleId) -> AsyncIterator[Entry]:
        async for gap in self._gaps.of(schedule_id):
            yield Missing.gap(gap)

    async def _owed(self, schedule_id: ScheduleId) -> AsyncIterator[Entry]:
        async for owed in self._arrears.of(schedule_id):
            yield Missing.owed(owed)


def _place(entry: Entry) -> tuple[int, bool]:
    return (entry.first, False) if isinstance(entry, Missing) else (entry.slot, True)


async def _next_strays(after: JobId | None, tx: Transaction) -> tuple[list[Stray], JobId | None]:
    return await tx.audit.strays(after=after, most=JOBS_AT_ONCE)
