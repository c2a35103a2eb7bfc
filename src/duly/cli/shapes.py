"""JSON as commands print it: the same names as in the HTTP API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from duly.cli.fires import A_YEAR, wall_time, zone_of
from duly.domain.backfills import Backfill
from duly.domain.cadence import Bounded, Cadence, Cron, Interval, Once, UnreadableCron
from duly.domain.cadence.words import duration_in_letters
from duly.domain.instants import SECOND, Instant, instant_of, written
from duly.domain.jobs import FinishedJob, Job, JobState
from duly.domain.logs import LogLine
from duly.domain.payloads import value_of
from duly.domain.policies import Policies
from duly.domain.pools import Pool
from duly.domain.runs import Run
from duly.domain.schedules import Fire, Revision, Schedule, ScheduleState, Target
from duly.domain.tokens import Token

Shape = dict[str, Any]


def page(items: Sequence[Shape], *, most: int, cursor: str | None) -> Shape:
    """A full page may have more behind it; `cursor` is where the next one begins."""
    return {"items": list(items), "next_cursor": cursor if len(items) >= most else None}


def schedule_shape(schedule: Schedule, last_run: Run | None = None) -> Shape:
    return {
        "id": schedule.id,
        "owner": schedule.owner,
        **plan_shape(schedule.cadence, schedule.target, schedule.policies),
        "enabled": schedule.state is ScheduleState.ACTIVE,
        "state": schedule.state.value,
        "state_reason": schedule.state_reason,
        "revision": schedule.revision,
        "words": schedule.cadence.explain(),
        "next_run_at": _of_second(schedule.next_slot),
        "fire_at": at(schedule.fire_at),
        "last_run_at": at(schedule.last_run_at),
        "last_run": None if last_run is None else run_shape(last_run),
        "created_at": at(schedule.created_at),
        "updated_at": at(schedule.updated_at),
    }


def plan_shape(cadence: Cadence, target: Target, policies: Policies) -> Shape:
    return {
        "target": target.kind,
        "input": value_of(target.payload),
        "pool": target.pool,
        "priority": target.priority,
        "retry": {
            "max_attempts": target.retry.max_attempts,
            "backoff_ms": target.retry.backoff_ms,
            "backoff_cap_ms": target.retry.backoff_cap_ms,
        },
        "timeout_ms": target.timeout_ms,
        **cadence_shape(cadence),
        "overlap": policies.overlap.value,
        "catch_up": policies.catch_up.value,
        "catch_up_cap": policies.catch_up_cap,
        "jitter_ms": policies.jitter_ms,
    }


def cadence_shape(cadence: Cadence) -> Shape:
    """One of `cron`, `every` and `at` is set."""
    shape: Shape = dict.fromkeys(("cron", "every", "at", "timezone", "anchor", "start_at", "end_at"))
    while isinstance(cadence, Bounded):
        shape["start_at"] = shape["start_at"] or _of_second(cadence.first)
        shape["end_at"] = shape["end_at"] or _of_second(cadence.last)
        cadence = cadence.cadence
    match cadence:
        case Cron() | UnreadableCron():
            shape |= {"cron": cadence.expr, "timezone": cadence.tz}
        case Interval():
            anchor = _of_second(cadence.anchor_second) if cadence.anchor_second else None
            shape |= {"every": duration_in_letters(cadence.seconds), "anchor": anchor}
        case Once():
            shape |= {"at": _of_second(cadence.second)}
    return shape


def revision_shape(revision: Revision) -> Shape:
    return {
        "revision": revision.number,
        "state": revision.state.value,
        **plan_shape(revision.cadence, revision.target, revision.policies),
        "words": revision.cadence.explain(),
        "effective_from": _of_second(revision.effective_from),
        "tz_version": revision.tz_version,
        "recorded_at": at(revision.recorded_at),
    }


def fire_shape(fire: Fire) -> Shape:
    return {"slot": at(fire.slot), "fire_at": at(fire.fire_at)}


def backfill_shape(asked: Backfill) -> Shape:
    return {
        "count": asked.count,
        "cap": asked.cap,
        "fits": 0 < asked.count <= asked.cap,
        "slots": list(map(at, asked.instants)),
    }


def backfilled_shape(runs: Sequence[Run]) -> Shape:
    told = [{"id": run.id, "scheduled_for": at(run.scheduled_for), "status": run.status.value} for run in runs]
    return {"count": len(runs), "runs": told}


def cadence_preview_shape(cadence: Cadence, now: datetime, *, count: int) -> Shape:
    fires = list(islice(cadence.after(now), count))
    zone = zone_of(cadence)
    changes = cadence.dst_notes(now, now + A_YEAR)
    return {
        "words": cadence.explain(),
        "fires": [{"at": _of_moment(fire), "local": wall_time(fire, zone).isoformat()} for fire in fires],
        "clock_changes": [{"at": _of_moment(note.at), "kind": note.kind.value, "text": note.text} for note in changes],
    }


def run_shape(run: Run) -> Shape:
    return {
        "id": run.id,
        "schedule_id": run.schedule_id,
        "owner": run.owner,
        "revision": run.revision,
        "kind": run.kind.value,
        "scheduled_for": at(run.scheduled_for),
        "fire_at": at(run.fire_at),
        "opened_at": at(run.opened_at),
        "status": run.status.value,
        "reason": None if run.reason is None else run.reason.value,
        "detail": run.detail,
        "job_id": run.job_id,
        "run_id": run.run_id,
        "trace_id": run.trace_id,
        "attempt_count": run.attempt_count,
        "started_at": at(run.started_at),
        "completed_at": at(run.completed_at),
        "error": run.error_message,
    }


def job_shape(job: Job | FinishedJob) -> Shape:
    shape = {
        "id": job.id,
        "kind": job.kind,
        "input": value_of(job.payload),
        "key": job.key,
        "lane": job.lane,
        "pool": job.pool,
        "priority": job.priority,
        "attempt": job.attempt,
        "retry_of": job.retry_of,
        "run_id": job.ledger_run,
        "run_at": at(job.run_at),
        "created_at": at(job.created_at),
        "started_at": at(job.started_at),
    }
    return shape | (_ended(job) if isinstance(job, FinishedJob) else _live(job))


def _live(job: Job) -> Shape:
    return {
        "max_attempts": job.retry.max_attempts,
        "state": job.state.value,
        "status": "RUNNING" if job.state is JobState.RUNNING else "QUEUED",
        "cancel_reason": job.cancel_reason,
        "finished_at": None,
        "error": None,
        "exit_code": None,
        "result": None,
    }


def _ended(job: FinishedJob) -> Shape:
    return {
        "max_attempts": job.max_attempts,
        "state": None,
        "status": job.status.value,
        "cancel_reason": None,
        "finished_at": at(job.finished_at),
        "error": job.error,
        "exit_code": job.exit_code,
        "result": None if job.result is None else value_of(job.result),
    }


def log_line_shape(line: LogLine) -> Shape:
    return {"seq": line.seq, "at": at(line.at), "level": line.level.value, "text": line.text}


def pool_shape(pool: Pool) -> Shape:
    return {
        "name": pool.name,
        "slots": pool.slots,
        "used": pool.used,
        "mode": pool.mode.value,
        "prefetch": pool.prefetch,
        "ageing_ms": pool.ageing_ms,
        "tickets": pool.tickets,
    }


def token_shape(token: Token) -> Shape:
    return {
        "id": token.id,
        "owner": token.owner,
        "role": token.role.value,
        "name": token.name,
        "created_at": at(token.created_at),
        "expires_at": at(token.expires_at),
        "revoked_at": at(token.revoked_at),
        "last_used_at": at(token.last_used_at),
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The fields that change, in words."""
    return [f"{name}: {before[name]} → {after[name]}" for name in before if before[name] != after[name]]


def at(instant: Instant | None) -> str | None:
    return None if instant is None else written(instant)


def _of_moment(moment: datetime) -> str:
    return written(instant_of(moment, field="moment"))


def _of_second(second: int | None) -> str | None:
    return None if second is None else written(Instant(second * SECOND))
