"""Schedules and runs as tests need them, with only the values that matter."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from duly.domain.cadence import Cadence, every
from duly.domain.ids import JobId, Owner, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import Entry
from duly.domain.policies import Policies
from duly.domain.runs import Run
from duly.domain.schedules import Schedule, Target, new_schedule
from duly.ports.storage import Transaction
from tests.contracts.clocks import MORNING
from tests.contracts.world import World, new

MINUTE = 60 * SECOND
HOURLY = every("1h")


def schedule(
    schedule_id: str = "hourly", *, cadence: Cadence = HOURLY, owner: str = "ann", **policies: Any
) -> Schedule:
    return new_schedule(
        schedule_id=schedule_id,
        owner=owner,
        cadence=cadence,
        target=Target(kind="report", params={"of": "yesterday"}),
        policies=Policies(**policies),
        now=MORNING,
    )


async def planned(world: World, schedule_id: str = "hourly", **given: Any) -> Schedule:
    made = schedule(schedule_id, **given)
    assert await world.transact(lambda tx: tx.schedules.add(made))
    return made


async def revised(world: World, changed: Schedule) -> Schedule:
    await world.transact(lambda tx: tx.schedules.revise(changed))
    return changed


def opened(made: Schedule) -> Schedule:
    """With its next slot opened, and the one after it next."""
    assert made.next_slot is not None
    return replace(made, opened_through=made.next_slot).planned()


def run(name: str, at: Instant = MORNING, *, schedule_id: str = "hourly", **given: Any) -> Run:
    return Run(
        id=RunId(name),
        schedule_id=ScheduleId(schedule_id),
        owner=Owner("ann"),
        revision=1,
        scheduled_for=at,
        fire_at=at,
        opened_at=at,
        **given,
    )


async def launched(world: World, name: str = "run", *, slot: int = 0, **job: Any) -> Run:
    """A ledger row and its job, put in one transaction."""
    (row,) = await launched_together(world, {name: slot}, **job)
    return row


async def launched_together(world: World, slots: Mapping[str, int], **job: Any) -> list[Run]:
    asked = new("report", **job)
    rows = [run(name, Instant(MORNING + slot * MINUTE), job_id=JobId(f"job of {name}")) for name, slot in slots.items()]
    entries = [
        Entry(JobId(f"job of {row.id}"), asked, asked.payload, world.clock.now(), row.scheduled_for, row.id)
        for row in rows
    ]

    async def work(tx: Transaction) -> None:
        assert await tx.ledger.add(rows) == {row.id for row in rows}
        await tx.jobs.put(entries)

    await world.transact(work)
    return rows


async def row_of(world: World, name: str = "run") -> Run:
    found = await world.transact(lambda tx: tx.ledger.get(RunId(name)))
    assert found is not None
    return found
