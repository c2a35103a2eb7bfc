"""Rows of schedules and of the ledger to domain objects and back; a schedule's slots are stored as microseconds."""

from functools import lru_cache
from typing import Any

from duly.domain.cadence import Bounded, Cadence, Cron, Interval, Once, UnreadableCron, cron
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.retries import RetryPolicy
from duly.domain.runs import Arrears, Gap, GapReason, Reason, Run, RunKind, RunStatus
from duly.domain.schedules import Revision, Schedule, ScheduleState, Target
from duly.storage.executor import Row

Values = dict[str, Any]


def schedule_values(schedule: Schedule) -> Values:
    return {
        "id": schedule.id,
        "owner_user_id": schedule.owner,
        "state": schedule.state.value,
        "state_reason": schedule.state_reason,
        "revision": schedule.revision,
        "opened_through": schedule.opened_through * SECOND,
        "next_run_at": _instant(schedule.next_slot),
        "fire_at": schedule.fire_at,
        "last_run_at": schedule.last_run_at,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        **_plan_values(schedule.target, schedule.cadence, schedule.policies),
    }


def revision_values(revision: Revision) -> Values:
    return {
        "schedule_id": revision.schedule_id,
        "number": revision.number,
        "effective_from": revision.effective_from * SECOND,
        "state": revision.state.value,
        "tz_version": revision.tz_version,
        "recorded_at": revision.recorded_at,
        **_plan_values(revision.target, revision.cadence, revision.policies),
    }


def _plan_values(target: Target, cadence: Cadence, policies: Policies) -> Values:
    return {
        "kind": target.kind,
        "input": target.payload,
        "pool": target.pool,
        "priority": target.priority,
        "max_attempts": target.retry.max_attempts,
        "backoff_ms": target.retry.backoff_ms,
        "backoff_cap_ms": target.retry.backoff_cap_ms,
        "timeout_ms": target.timeout_ms,
        **_cadence_values(cadence),
        "overlap": policies.overlap.value,
        "catch_up": policies.catch_up.value,
        "catch_up_cap": policies.catch_up_cap,
        "jitter_ms": policies.jitter_ms,
    }


def _cadence_values(cadence: Cadence) -> Values:
    """Bounds within bounds are stored as what both leave."""
    first: int | None = None
    last: int | None = None
    while isinstance(cadence, Bounded):
        first = max((second for second in (first, cadence.first) if second is not None), default=None)
        last = min((second for second in (last, cadence.last) if second is not None), default=None)
        cadence = cadence.cadence
    values: Values = dict.fromkeys(("cron", "every_s", "anchor_at", "once_at"))
    values |= {"timezone": "UTC", "start_at": _instant(first), "end_at": _instant(last)}
    match cadence:
        case Cron() | UnreadableCron():
            return values | {"cron": cadence.expr, "timezone": cadence.tz}
        case Interval():
            return values | {"every_s": cadence.seconds, "anchor_at": _instant(cadence.anchor_second)}
        case Once():
            return values | {"once_at": _instant(cadence.second)}
        case _:
            raise InvalidInput("cadence", f"is a {type(cadence).__name__}", fix="use cron(…), every(…) or once(…)")


def schedule_from_row(row: Row) -> Schedule:
    target, cadence, policies = _plan_from_row(row[11:])
    return Schedule(
        id=row[0],
        owner=row[1],
        state=ScheduleState(row[2]),
        state_reason=row[3],
        revision=row[4],
        opened_through=row[5] // SECOND,
        next_slot=_second(row[6]),
        fire_at=row[7],
        last_run_at=row[8],
        created_at=row[9],
        updated_at=row[10],
        target=target,
        cadence=cadence,
        policies=policies,
    )


def revision_from_row(row: Row) -> Revision:
    target, cadence, policies = _plan_from_row(row[6:])
    return Revision(
        schedule_id=row[0],
        number=row[1],
        effective_from=row[2] // SECOND,
        state=ScheduleState(row[3]),
        tz_version=row[4],
        recorded_at=row[5],
        target=target,
        cadence=cadence,
        policies=policies,
    )


def _plan_from_row(row: Row) -> tuple[Target, Cadence, Policies]:
    target = Target(
        kind=row[0],
        payload=row[1],
        pool=row[2],
        priority=row[3],
        retry=_retry(row[4], row[5], row[6]),
        timeout_ms=row[7],
    )
    return target, cadence_from_row(row[8:15]), _policies(*row[15:])


# Kept, because many schedules share a few of them.


@lru_cache(maxsize=1024)
def _retry(max_attempts: int, backoff_ms: int, backoff_cap_ms: int) -> RetryPolicy:
    return RetryPolicy(max_attempts=max_attempts, backoff_ms=backoff_ms, backoff_cap_ms=backoff_cap_ms)


@lru_cache(maxsize=1024)
def _policies(overlap: str, catch_up: str, catch_up_cap: int, jitter_ms: int) -> Policies:
    return Policies(
        overlap=Overlap(overlap), catch_up=CatchUp(catch_up), catch_up_cap=catch_up_cap, jitter_ms=jitter_ms
    )


def cadence_from_row(row: Row) -> Cadence:
    """In the order cron, timezone, every_s, anchor_at, once_at, start_at, end_at."""
    expr, tz, every_s, anchor_at, once_at, start_at, end_at = row
    cadence: Cadence
    if expr is not None:
        cadence = _cron(expr, tz)
    elif every_s is not None:
        cadence = Interval(every_s, anchor_at // SECOND)
    else:
        cadence = Once(once_at // SECOND)
    if start_at is None and end_at is None:
        return cadence
    return Bounded(cadence=cadence, first=_second(start_at), last=_second(end_at))


def _cron(expr: str, tz: str) -> Cadence:
    try:
        return cron(expr, tz)
    except InvalidInput as refusal:
        return UnreadableCron(expr, tz, str(refusal))


def run_row(run: Run) -> Row:
    """In the order of `insert_runs`. Words go as they are, which are texts: to ask for their `value` takes longer."""
    return (
        run.id,
        run.schedule_id,
        run.owner,
        run.revision,
        run.kind,
        run.own_key,
        run.scheduled_for,
        run.fire_at,
        run.opened_at,
        run.status,
        run.reason,
        run.detail,
        run.job_id,
        run.run_id,
        run.trace_id,
        run.attempt_count,
        run.started_at,
        run.completed_at,
        run.error_message,
    )


def run_from_row(row: Row) -> Run:
    return Run(
        id=row[0],
        schedule_id=row[1],
        owner=row[2],
        revision=row[3],
        kind=RunKind(row[4]),
        own_key=row[5],
        scheduled_for=row[6],
        fire_at=row[7],
        opened_at=row[8],
        status=RunStatus(row[9]),
        reason=None if row[10] is None else Reason(row[10]),
        detail=row[11],
        job_id=row[12],
        run_id=row[13],
        trace_id=row[14],
        attempt_count=row[15],
        started_at=row[16],
        completed_at=row[17],
        error_message=row[18],
    )


def gap_row(gap: Gap) -> Row:
    return (gap.schedule_id, gap.first, gap.last, gap.count, gap.reason.value, gap.revision, gap.recorded_at)


def gap_from_row(row: Row) -> Gap:
    return Gap(
        schedule_id=row[0],
        first=row[1],
        last=row[2],
        count=row[3],
        reason=GapReason(row[4]),
        revision=row[5],
        recorded_at=row[6],
    )


def arrears_row(owed: Arrears) -> Row:
    return (owed.schedule_id, owed.first, owed.next, owed.last, owed.count, owed.due_at, owed.every, owed.revision)


def arrears_from_row(row: Row) -> Arrears:
    return Arrears(
        schedule_id=row[0],
        first=row[1],
        next=row[2],
        last=row[3],
        count=row[4],
        due_at=row[5],
        every=row[6],
        revision=row[7],
    )


def _instant(second: int | None) -> Instant | None:
    return None if second is None else Instant(second * SECOND)


def _second(instant: int | None) -> int | None:
    return None if instant is None else instant // SECOND
