"""Due slots become rows and jobs, in the transaction that records what comes next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from duly.application.batch import Batch, Drawn
from duly.application.catching_up import take
from duly.application.pace import Pace
from duly.domain.coverage import Outage, outages_between
from duly.domain.decisions import Decision
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.openings import InFlight
from duly.domain.policies import Overlap
from duly.domain.pools import Pool
from duly.domain.runs import Arrears
from duly.domain.schedules import Schedule, Standing, UnknownSchedule
from duly.ports.storage import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What was decided, about how many schedules, and whether something that is due was left."""

    decisions: Sequence[Decision] = ()
    schedules: int = 0
    more: bool = False


async def open_schedules(tx: Transaction, due: Sequence[Schedule], drawn: Drawn, pace: Pace) -> Opened:
    """Opens what is due of schedules that are kept from others; what does not fit stays due."""
    if not due:
        return Opened()
    since = min(schedule.fire_at or drawn.now for schedule in due)
    # Whoever opens slots keeps time, even if its heart is held up.
    outages = await outages_until(tx, drawn.now, pace, since=since, silent_for=Micros(pace.outage_after // 2))
    in_flight = await _in_flight(tx, due)
    batch = Batch(drawn, pace)
    judged: list[Standing] = []
    for schedule in due:
        if batch.is_full:
            break
        judged.append(batch.judge(schedule, outages, in_flight.get(schedule.id) or InFlight()))
    await batch.save(tx)
    is_due = [after.fire_at is not None and after.fire_at <= drawn.now for after in judged]
    return Opened(decisions=batch.decisions, schedules=len(judged), more=len(judged) < len(due) or any(is_due))


async def _in_flight(tx: Transaction, schedules: Sequence[Schedule]) -> Mapping[ScheduleId, InFlight]:
    """With what their runs wait for, where a slot will have to say it."""
    found = await tx.ledger.in_flight([schedule.id for schedule in schedules])
    pools: dict[PoolName, Pool | None] = {}
    for schedule in schedules:
        runs, name = found.get(schedule.id), schedule.target.pool
        if runs is None or runs.running or schedule.policies.overlap is not Overlap.SKIP or schedule.target.template:
            continue
        if name not in pools:
            pools[name] = await tx.pools.get(name)
        pool = pools[name]
        runs.waits_for = None if pool is None else pool.standstill
    return found


async def open_before_change(
    tx: Transaction, schedule: Schedule, drawn: Drawn, pace: Pace
) -> tuple[Schedule, Sequence[Decision]]:
    """Opens every slot of a locked schedule up to now, so that none falls between two revisions.

    A slot that jitter lets fire later is one of them: its job is put now, for then, as it was planned.
    """
    outages = await outages_until(tx, drawn.now, pace, since=schedule.fire_at or drawn.now)
    batch = Batch(drawn, pace)
    while schedule.next_slot is not None and schedule.fire_at is not None:
        if min(schedule.next_slot * SECOND, schedule.fire_at) > drawn.now:
            break
        in_flight = (await _in_flight(tx, [schedule])).get(schedule.id) or InFlight()
        batch.judge(schedule, outages, in_flight, until=max(drawn.now, schedule.fire_at))
        await batch.save(tx)
        # As it is now: moved on, or broken.
        schedule = await tx.schedules.lock(schedule.id) or schedule
    return schedule, batch.decisions


async def outages_until(
    tx: Transaction, now: Instant, pace: Pace, *, since: Instant, silent_for: Micros | None = None
) -> list[Outage]:
    """If nobody kept time lately, coverage begins anew first: what fell into the silence was missed, not late.

    After a silence of `silent_for`, by default an outage's, coverage is extended.
    """
    spans = await tx.ledger.coverage(since)
    if not spans or now - spans[-1].end > (pace.outage_after if silent_for is None else silent_for):
        await tx.ledger.keep_alive(now, outage_after=pace.outage_after)
        spans = await tx.ledger.coverage(since)
    return outages_between(spans, outage_after=pace.outage_after)


async def catch_up(tx: Transaction, drawn: Drawn, pace: Pace) -> Opened:
    """Opens missed slots that are owed, a tick's worth, of those first that have waited longest.

    They belong to the revision that planned them. Whatever became of the schedule since, paused or edited, they run
    what that revision ran, as slots do that were opened in time. Deleting a schedule forgives what it owes; so does a
    cadence that can no longer be read, or has other fires than it had.
    """
    room = pace.most_caught_up
    batch = Batch(drawn, pace)
    due = await tx.ledger.arrears_due(drawn.now, room)
    for owed in due:
        schedule, planned = await _as_planned(tx, owed)
        try:
            taken = take(owed, planned.cadence, now=drawn.now, most=room, pace=pace)
        except InvalidInput:
            batch.forgive(owed)
            continue
        except Exception:  # noqa: BLE001 - whatever it was, it must not stand in the way of others
            batch.postpone(owed)
            continue
        batch.catch_up(schedule, planned, taken)
        room -= len(taken.slots)
        if room == 0:
            break
    await batch.save(tx)
    return Opened(decisions=batch.decisions, schedules=len(due))


async def _as_planned(tx: Transaction, owed: Arrears) -> tuple[Schedule, Schedule]:
    """A schedule as it is, and as it was when it planned what is owed."""
    schedule = await tx.schedules.get(owed.schedule_id)
    if schedule is None:
        raise UnknownSchedule(owed.schedule_id)
    if schedule.revision == owed.revision:
        return schedule, schedule
    revision = next(one for one in await tx.schedules.revisions(schedule.id) if one.number == owed.revision)
    planned = replace(
        schedule,
        revision=revision.number,
        cadence=revision.cadence,
        policies=revision.policies,
        target=revision.target,
        updated_at=revision.recorded_at,
    )
    return schedule, planned
