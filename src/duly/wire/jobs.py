"""Jobs, live and ended, and what they said, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobKey, Lane, PoolName
from duly.domain.instants import instant_of, moment_of
from duly.domain.jobs import FinishedJob, JobState, JobStatus
from duly.domain.jobs import Job as LiveJob
from duly.domain.jobs import NewJob as DomainNewJob
from duly.domain.logs import Artifact, LogLevel, LogLine, Progress
from duly.domain.payloads import value_of
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DEFAULT_RETRY, RetryPolicy
from duly.domain.schedules import LANE_PREFIX
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape

_EXAMPLE: dict[str, JsonValue] = {"kind": "digest", "params": {"topic": "news"}, "key": "digest:news"}


class JobRetry(Shape):
    max_attempts: Annotated[int, Field(description="The first one counts.")] = DEFAULT_RETRY.max_attempts
    backoff_ms: int = DEFAULT_RETRY.backoff_ms
    backoff_cap_ms: int = DEFAULT_RETRY.backoff_cap_ms


class NewJob(Shape):
    """Whatever is left out has its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    kind: Annotated[str, Field(description="The handler that does it.", examples=["digest"])]
    params: Annotated[dict[str, Any], Field(description="What the handler is given; shown as the job's `input`.")] = (
        Field(default_factory=dict)
    )
    key: Annotated[
        str | None,
        Field(
            description="One live job has it: a job that waits is replaced by this one, one that runs stands for it."
        ),
    ] = None
    lane: Annotated[str | None, Field(description="Jobs of one lane run one after the other.")] = None
    run_at: Annotated[Moment | None, Field(description="Not before; at once if none is given.")] = None
    pool: str = DEFAULT_POOL
    resources: Annotated[list[str], Field(description="Other pools that it takes a place of while it runs.")] = Field(
        default_factory=list
    )
    priority: int = 0
    retry: JobRetry = JobRetry()
    timeout_ms: int | None = None


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
    warnings: Annotated[
        list[str], Field(description="Of a queued job: that no worker which is running has a handler for it.")
    ] = Field(default_factory=list)


class LoggedLine(Shape):
    seq: Annotated[int, Field(description="Counts the lines of a job from 1; a number that is missing was lost.")]
    at: Moment
    level: LogLevel
    text: str


class Cancellation(Shape):
    reason: Annotated[str, Field(description="Kept with what is cancelled.", examples=["no longer needed"])]


def new_job_of(new: NewJob) -> DomainNewJob:
    """What the core is asked for; raises InvalidInput naming the field."""
    require_own_kind(new.kind, field="kind")
    require_own_lane(new.lane)
    return DomainNewJob(
        kind=new.kind,
        params=new.params,
        key=None if new.key is None else JobKey(new.key),
        lane=None if new.lane is None else Lane(new.lane),
        run_at=None if new.run_at is None else instant_of(new.run_at, field="run_at"),
        pool=PoolName(new.pool),
        resources=tuple(map(PoolName, new.resources)),
        priority=new.priority,
        retry=RetryPolicy(**new.retry.model_dump()),
        timeout_ms=new.timeout_ms,
    )


def require_own_kind(kind: str, *, field: str) -> None:
    """Nobody names what Duly runs for itself: a command comes from a template, which says whose it is."""
    if kind.startswith("duly."):
        raise InvalidInput(field, "names that begin with duly. are Duly's own", fix="choose another name")


def require_own_lane(lane: str | None) -> None:
    """A schedule's lane is for its runs: whoever else stood in it would hold them up."""
    if lane is not None and lane.startswith(LANE_PREFIX):
        raise InvalidInput("lane", f"names that begin with {LANE_PREFIX} are those of schedules", fix="choose another")


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


def job_detail_shape(
    job: LiveJob | FinishedJob, progress: Progress | None, artifacts: list[Artifact], warning: str | None = None
) -> JobDetail:
    return JobDetail.model_construct(
        **job_fields(job),
        progress=None if progress is None else progress_shape(progress),
        artifacts=[JobArtifact(name=each.name, size=each.size, sha256=each.sha256) for each in artifacts],
        warnings=[] if warning is None else [warning],
    )


def progress_shape(progress: Progress) -> JobProgress:
    return JobProgress(fraction=progress.fraction, note=progress.note, at=moment_of(progress.at))


def line_shape(line: LogLine) -> LoggedLine:
    return LoggedLine.model_construct(seq=line.seq, at=moment_of(line.at), level=line.level, text=line.text)
