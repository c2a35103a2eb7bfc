"""Schedules of workflows as deployers and executors name them, field by field, in JSON."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue

from duly.application.registrar import Registered, ScheduleInput, key_of
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.payloads import json_of
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import Schedule as DomainSchedule
from duly.domain.schedules import ScheduleState
from duly.domain.workflows import CallBack, CalledBack
from duly.wire.cadences import flat
from duly.wire.moments import Moment
from duly.wire.shapes import Shape

_UPSERT: dict[str, JsonValue] = {
    "schedule_id": "morning-news",
    "workflow_id": "morning-news",
    "version": 1,
    "user_id": "local",
    "cron_expr": "0 7 * * *",
    "timezone": "Europe/Vienna",
}
_START: dict[str, JsonValue] = {
    "workflow_id": "morning-news",
    "version": 1,
    "user_id": "local",
    "scheduled_for": "2026-03-29T05:00:00Z",
    "idempotency_key": "2026-03-29",
}


class Status(StrEnum):
    ENQUEUED = "ENQUEUED"
    STARTED = "STARTED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class UpsertSchedule(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [_UPSERT]})

    schedule_id: Annotated[str | None, Field(description="Drawn if none is given.")] = None
    workflow_id: str
    version: int
    user_id: str
    cron_expr: Annotated[str, Field(description="5 fields, or 6 with seconds first.")]
    timezone: str
    start_at: Moment | None = None
    end_at: Moment | None = None
    jitter_ms: int | None = None
    overlap_policy: str | None = None
    catchup_policy: str | None = None

    def asked(self, drawn: str | None) -> ScheduleInput:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return ScheduleInput(**{**given, "schedule_id": drawn if self.schedule_id is None else self.schedule_id})


class Upserted(Shape):
    schedule_id: str
    next_run_at: Moment | None


class PauseSchedule(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"schedule_id": "morning-news", "paused": True}]})

    schedule_id: str
    paused: bool


class CronSchedule(Shape):
    schedule_id: str
    workflow_id: str
    version: int | None
    user_id: str
    cron_expr: str
    timezone: str
    start_at: Moment | None
    end_at: Moment | None
    next_run_at: Moment | None
    paused: bool
    jitter_ms: int
    overlap_policy: str
    catchup_policy: str
    updated_at: Moment
    preview: Annotated[list[Moment], Field(description="The next five slots.")]


class CronRun(Shape):
    idempotency_key: Annotated[
        str, Field(description="sha256 of `{schedule_id}:{second of run_at}`; of a run by hand, its job's key.")
    ]
    schedule_id: str
    run_at: Moment
    status: Status
    run_id: str | None
    created_at: Moment
    updated_at: Moment


class StartRun(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [_START]})

    workflow_id: str
    version: int
    user_id: str
    scheduled_for: Moment
    idempotency_key: str


class RunCallBack(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "SUCCESS", "result": {"posts": 3}}]})

    status: Annotated[CalledBack, Field(strict=False)]
    result: Any = None
    error: str | None = None

    def said(self) -> CallBack:
        if self.status is CalledBack.STARTED:
            return CallBack(self.status)
        value = self.error if self.status is CalledBack.FAILED else self.result
        return CallBack(self.status, json_of(value, field="result"))


def upserted_shape(schedule: DomainSchedule) -> Upserted:
    return Upserted(schedule_id=schedule.id, next_run_at=_next(schedule))


def schedule_shape(registered: Registered) -> CronSchedule:
    schedule, timing = registered.schedule, flat(registered.schedule.cadence)
    return CronSchedule.model_construct(
        schedule_id=schedule.id,
        workflow_id=registered.bound.workflow,
        version=registered.version,
        user_id=schedule.owner,
        cron_expr=timing["cron"],
        timezone=timing["timezone"],
        start_at=timing["start_at"],
        end_at=timing["end_at"],
        next_run_at=_next(schedule),
        paused=schedule.state is not ScheduleState.ACTIVE,
        jitter_ms=schedule.policies.jitter_ms,
        overlap_policy=schedule.policies.overlap.value,
        catchup_policy=schedule.policies.catch_up.value,
        updated_at=moment_of(schedule.updated_at),
        preview=[moment_of(fire.slot) for fire in registered.preview],
    )


def run_shape(run: Run) -> CronRun:
    return CronRun(
        idempotency_key=key_of(run),
        schedule_id=run.schedule_id,
        run_at=moment_of(run.scheduled_for),
        status=status_of(run),
        run_id=run.run_id,
        created_at=moment_of(run.opened_at),
        updated_at=moment_of(run.completed_at or run.started_at or run.opened_at),
    )


def status_of(run: Run) -> Status:
    """A run that was cancelled failed if it had begun, and was skipped if not."""
    if run.status is RunStatus.CANCELLED:
        return Status.SKIPPED if run.started_at is None else Status.FAILED
    return {
        RunStatus.PENDING: Status.ENQUEUED,
        RunStatus.RUNNING: Status.STARTED,
        RunStatus.SUCCESS: Status.SUCCESS,
        RunStatus.ERROR: Status.FAILED,
        RunStatus.SKIPPED: Status.SKIPPED,
    }[run.status]


def _next(schedule: DomainSchedule) -> Any:
    return None if schedule.next_slot is None else moment_of(Instant(schedule.next_slot * SECOND))
