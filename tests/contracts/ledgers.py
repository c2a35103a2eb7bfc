"""Schedules with a past, written through the ports as a timekeeper would, and ways past what guards it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from duly import every
from duly.application.audit import Audit
from duly.domain.audit import Verdict
from duly.domain.ids import JobId, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import Entry, NewJob
from duly.domain.policies import Policies
from duly.domain.retries import NO_RETRY, RetryPolicy
from duly.domain.runs import Arrears, Gap, GapReason, Reason, Run, RunStatus
from duly.domain.schedules import Schedule, Target, new_schedule
from duly.ports.storage import Transaction
from tests.contracts.clocks import MORNING
from tests.contracts.world import WIDE, World

OUTAGE_AFTER = Micros(60 * SECOND)


def minute(number: float) -> Instant:
    return Instant(MORNING + int(number * 60 * SECOND))


class Past:
    """One schedule, every minute from minute 1 on, and what is recorded of it."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        self.world = world
        self.schedule = schedule

    @classmethod
    async def begin(cls, world: World, name: str = "s", *, retry: RetryPolicy = NO_RETRY, **policies: Any) -> "Past":
        schedule = new_schedule(
            schedule_id=name,
            owner="me",
            cadence=every("1m"),
            target=Target(kind="work", pool=WIDE, retry=retry),
            policies=Policies(**policies),
            now=MORNING,
        )
        past = cls(world, schedule)

        async def work(tx: Transaction) -> None:
            await tx.schedules.add(schedule)

        await world.queue.storage.transact(work)
        return past

    async def alive(self, start: float, end: float) -> None:
        """Somebody kept time, with a heartbeat every half minute."""
        at = start
        while at <= end:
            now = minute(at)

            async def work(tx: Transaction, now: Instant = now) -> None:
                await tx.ledger.keep_alive(now, outage_after=OUTAGE_AFTER)

            await self.world.queue.storage.transact(work)
            at += 0.5

    async def open(self, *minutes: int) -> list[RunId]:
        """Rows with their jobs, and what was opened through."""
        runs = [self._run(number) for number in minutes]

        async def work(tx: Transaction) -> None:
            await tx.ledger.add(runs)
            await tx.jobs.put([self._entry(run) for run in runs])
            await tx.schedules.advance([self._opened(max(minutes))])

        await self.world.queue.storage.transact(work)
        return [run.id for run in runs]

    async def skip(self, number: int, reason: Reason = Reason.OVERLAP) -> None:
        run = self._run(number)._replace(
            status=RunStatus.SKIPPED, reason=reason, job_id=None, completed_at=minute(number)
        )

        async def work(tx: Transaction) -> None:
            await tx.ledger.add([run])
            await tx.schedules.advance([self._opened(number)])

        await self.world.queue.storage.transact(work)

    async def miss(self, first: int, last: int, *, owed: bool = False) -> None:
        arrears = Arrears(
            schedule_id=self.schedule.id,
            revision=1,
            first=minute(first),
            next=minute(first),
            last=minute(last),
            count=last - first + 1,
            due_at=minute(last + 1),
        )
        gap = Gap(
            schedule_id=self.schedule.id,
            revision=1,
            reason=GapReason.OUTAGE,
            first=arrears.first,
            last=arrears.last,
            count=arrears.count,
            recorded_at=arrears.due_at,
        )

        async def work(tx: Transaction) -> None:
            await (tx.ledger.owe([arrears]) if owed else tx.ledger.add_gaps([gap]))
            await tx.schedules.advance([self._opened(last)])

        await self.world.queue.storage.transact(work)

    async def run_all(self) -> None:
        await (await self.world.hand()).work_off()

    def _run(self, number: int) -> Run:
        return Run(
            id=RunId(f"run_{self.schedule.id}_{number:03}"),
            schedule_id=self.schedule.id,
            owner=self.schedule.owner,
            revision=1,
            scheduled_for=minute(number),
            fire_at=minute(number),
            opened_at=minute(number),
            job_id=JobId(f"job_{self.schedule.id}_{number:03}"),
        )

    def _entry(self, run: Run) -> Entry:
        new = NewJob(kind="work", pool=WIDE, retry=self.schedule.target.retry)
        return Entry(run.job_id or JobId(""), new, new.payload, run.opened_at, 0, ledger_run=run.id)

    def _opened(self, number: int) -> Schedule:
        return replace(self.schedule, opened_through=minute(number) // SECOND).planned()


async def audited(world: World, name: str | None = None, **rest: Any) -> list[Verdict]:
    audit = Audit(storage=world.queue.storage)
    return [verdict async for verdict in audit.verdicts(None if name is None else ScheduleId(name), **rest)]


async def found(world: World) -> list[str]:
    return [str(finding) for verdict in await audited(world) for finding in verdict.findings.kept]


@asynccontextmanager
async def unguarded(world: World, index: str, *, clean_up: str) -> AsyncIterator[None]:
    """Without a unique index, which comes back once what it forbids is gone: other tests use the same database."""
    ((definition,),) = await world.rows(
        f"SELECT sql FROM sqlite_schema WHERE name = '{index}'"
        if world.store == "sqlite"
        else f"SELECT indexdef FROM pg_indexes WHERE indexname = '{index}'"
    )
    await world.rows(f"DROP INDEX {index}")
    try:
        yield
    finally:
        await world.rows(clean_up)
        await world.rows(definition)


async def forget(world: World) -> None:
    """What was broken on purpose is gone before the tables are held against their laws."""
    for table in ("jobs", "schedule_runs"):
        await world.rows(f"DELETE FROM {table}")


def names(verdicts: Sequence[Verdict]) -> list[str]:
    return [verdict.schedule.id for verdict in verdicts]
