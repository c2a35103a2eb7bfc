"""Jobs, live and ended, and what they said, in JSON."""

from typing import Annotated, Any

from pydantic import Field

from duly.domain.instants import moment_of
from duly.domain.jobs import FinishedJob, JobState, JobStatus
from duly.domain.jobs import Job as LiveJob
from duly.domain.logs import Artifact, LogLevel, LogLine, Progress
from duly.domain.payloads import value_of
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape


class Job(Shape):
    id: str
    kind: Annotated[str, Field(description="The handler that does it.")]
    status: JobStatus
    state: Annotated[JobState | None, Field(description="Where a live job stands; null once it has ended.")]
    pool: str
    priority: int
    key: str | None
    lane: str | None
    attempt: int
    max_attempts: int
    retry_of: str | None
    run_id: Annotated[str | None, Field(description="The run that it belongs to.")]
    input: dict[str, Any]
    result: Any
    error: str | None
    exit_code: int | None
    cancel_reason: Annotated[str | None, Field(description="Why it was asked to stop, while it has not.")]
    run_at: Moment
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class JobProgress(Shape):
    fraction: Annotated[float, Field(ge=0, le=1)]
    note: str
    at: Moment


class JobArtifact(Shape):
    name: str
    size: int
    sha256: str


class JobDetail(Job):
    progress: JobProgress | None
    artifacts: list[JobArtifact]


class LoggedLine(Shape):
    seq: Annotated[int, Field(description="Counts the lines of a job from 1; a number that is missing was lost.")]
    at: Moment
    level: LogLevel
    text: str


class Cancellation(Shape):
    reason: Annotated[str, Field(description="Kept with what is cancelled.", examples=["no longer needed"])]


def job_fields(job: LiveJob | FinishedJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "pool": job.pool,
        "priority": job.priority,
        "key": job.key,
        "lane": job.lane,
        "attempt": job.attempt,
        "retry_of": job.retry_of,
        "run_id": job.ledger_run,
        "input": value_of(job.payload),
        "run_at": moment_of(job.run_at),
        "created_at": moment_of(job.created_at),
        "started_at": moment_or_none(job.started_at),
        **(_ended(job) if isinstance(job, FinishedJob) else _live(job)),
    }


def _ended(job: FinishedJob) -> dict[str, Any]:
    return {
        "status": job.status,
        "state": None,
        "max_attempts": job.max_attempts,
        "result": None if job.result is None else value_of(job.result),
        "error": job.error,
        "exit_code": job.exit_code,
        "cancel_reason": None,
        "finished_at": moment_of(job.finished_at),
    }


def _live(job: LiveJob) -> dict[str, Any]:
    return {
        "status": JobStatus.RUNNING if job.state is JobState.RUNNING else JobStatus.QUEUED,
        "state": job.state,
        "max_attempts": job.retry.max_attempts,
        "result": None,
        "error": None,
        "exit_code": None,
        "cancel_reason": job.cancel_reason,
        "finished_at": None,
    }


def job_shape(job: LiveJob | FinishedJob) -> Job:
    return Job.model_construct(**job_fields(job))


def job_detail_shape(job: LiveJob | FinishedJob, progress: Progress | None, artifacts: list[Artifact]) -> JobDetail:
    return JobDetail.model_construct(
        **job_fields(job),
        progress=None if progress is None else progress_shape(progress),
        artifacts=[JobArtifact(name=each.name, size=each.size, sha256=each.sha256) for each in artifacts],
    )


def progress_shape(progress: Progress) -> JobProgress:
    return JobProgress(fraction=progress.fraction, note=progress.note, at=moment_of(progress.at))


def line_shape(line: LogLine) -> LoggedLine:
    return LoggedLine.model_construct(seq=line.seq, at=moment_of(line.at), level=line.level, text=line.text)
