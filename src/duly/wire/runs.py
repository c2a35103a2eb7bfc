"""Runs and what they tell while they go on, in JSON."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from duly.domain.instants import moment_of
from duly.domain.jobs import FinishedJob
from duly.domain.jobs import Job as LiveJob
from duly.domain.runs import Reason, RunKind, RunStatus
from duly.domain.runs import Run as DomainRun
from duly.wire.jobs import Job, JobProgress, LoggedLine, job_shape
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape


class Run(Shape):
    id: str
    schedule_id: str
    owner: str
    revision: int
    kind: RunKind
    status: RunStatus
    scheduled_for: Annotated[Moment, Field(description="Its slot.")]
    fire_at: Moment
    opened_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    reason: Annotated[Reason | None, Field(description="Why it did not run.")]
    detail: str | None
    error: str | None
    job_id: str | None
    run_id: Annotated[str | None, Field(description="The execution's own id, once there is one.")]
    trace_id: str | None
    attempt_count: int


class RunDetail(Run):
    trace_url: Annotated[str | None, Field(description="Where the tracing backend shows it.")]
    attempts: Annotated[list[Job], Field(description="Its job and the retries of it, first to last.")]


class LogEvent(LoggedLine):
    attempt: int
    job_id: str


class ProgressEvent(JobProgress):
    attempt: int
    job_id: str


class EndEvent(Shape):
    status: RunStatus


def run_fields(run: DomainRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "schedule_id": run.schedule_id,
        "owner": run.owner,
        "revision": run.revision,
        "kind": run.kind,
        "status": run.status,
        "scheduled_for": moment_of(run.scheduled_for),
        "fire_at": moment_of(run.fire_at),
        "opened_at": moment_of(run.opened_at),
        "started_at": moment_or_none(run.started_at),
        "completed_at": moment_or_none(run.completed_at),
        "reason": run.reason,
        "detail": run.detail,
        "error": run.error_message,
        "job_id": run.job_id,
        "run_id": run.run_id,
        "trace_id": run.trace_id,
        "attempt_count": run.attempt_count,
    }


def run_shape(run: DomainRun) -> Run:
    return Run.model_construct(**run_fields(run))


def run_detail_shape(
    run: DomainRun, attempts: Sequence[LiveJob | FinishedJob], trace_url: str | None = None
) -> RunDetail:
    told = [job_shape(job) for job in attempts]
    return RunDetail.model_construct(**run_fields(run), trace_url=trace_url, attempts=told)
