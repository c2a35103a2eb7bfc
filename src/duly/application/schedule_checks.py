"""What must be so before a schedule is looked at, saved or run: it is the caller's, and its target can be."""

from duly.application.batch import refusal_of
from duly.application.template_targets import snapshot_for
from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner, PoolName, ScheduleId
from duly.domain.policies import Policies
from duly.domain.schedules import Schedule, ScheduleState, Target, UnknownSchedule
from duly.domain.texts import text_of
from duly.ports.storage import Transaction


async def known_schedule(tx: Transaction, schedule_id: str, owner: str | None, *, lock: bool = False) -> Schedule:
    """A schedule of the caller's, or its tombstone."""
    find = tx.schedules.lock if lock else tx.schedules.get
    schedule = await find(ScheduleId(text_of(schedule_id, field="id")))
    if schedule is None or owner not in (None, schedule.owner):
        raise UnknownSchedule(schedule_id)
    return schedule


async def living_schedule(tx: Transaction, schedule_id: str, owner: str | None, *, lock: bool = False) -> Schedule:
    schedule = await known_schedule(tx, schedule_id, owner, lock=lock)
    require_living(schedule)
    return schedule


def require_living(schedule: Schedule) -> None:
    if schedule.state is ScheduleState.DELETED:
        raise UnknownSchedule(schedule.id)


def require_plan(*, target: Target | None, policies: Policies | None) -> None:
    if target is not None and not isinstance(target, Target):
        raise InvalidInput("target", f"is a {type(target).__name__}", fix="use a Target")
    if policies is not None and not isinstance(policies, Policies):
        raise InvalidInput("policies", f"is a {type(policies).__name__}", fix="use Policies")


async def require_target(tx: Transaction, target: Target, owner: Owner, *, taking: bool = False) -> None:
    """Its pool, or the template that it names, which has to take its params."""
    pool = target.pool
    if target.template is not None:
        pool = (await snapshot_for(tx, target.kind, target.payload, owner)).new.pool
    await require_pool(tx, pool, taking=taking)


async def require_pool(tx: Transaction, name: PoolName, *, taking: bool = False) -> None:
    """A pool that is there, and one that takes jobs now if one is to be put."""
    pool = await tx.pools.get(name)
    refusal = refusal_of(pool, name)
    if refusal is not None and (pool is None or taking):
        raise refusal
