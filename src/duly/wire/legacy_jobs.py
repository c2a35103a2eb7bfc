"""Jobs in the words of the older routes: the same jobs, with the older names of how they stand."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from duly.domain.jobs import FinishedJob, JobStatus
from duly.domain.jobs import Job as LiveJob
from duly.wire.jobs import NewJob, job_fields
from duly.wire.moments import Moment
from duly.wire.shapes import Shape

# The only place that says them.
OLD_WORDS = {
    JobStatus.QUEUED: "queued",
    JobStatus.RUNNING: "running",
    JobStatus.COMPLETED: "succeeded",
    JobStatus.FAILED: "error",
    JobStatus.SKIPPED: "skipped",
    JobStatus.CANCELLED: "cancelled",
}
OldStatus = Literal["queued", "running", "succeeded", "error", "skipped", "cancelled"]

_EXAMPLE: dict[str, JsonValue] = {"type": "digest", "params": {"topic": "news"}}


class LegacyNewJob(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    type: Annotated[str, Field(description="What is called `kind` now.")]
    params: dict[str, Any] = Field(default_factory=dict)
    priority: int = 0

    def meant(self) -> NewJob:
        return NewJob(kind=self.type, params=self.params, priority=self.priority)


class LegacyJob(Shape):
    job_id: str
    type: str
    status: OldStatus
    params: dict[str, Any]
    priority: int
    result: Any
    error: str | None
    exit_code: int | None
    retry_of: str | None
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class LegacyJobs(Shape):
    jobs: list[LegacyJob]


def legacy_shape(job: LiveJob | FinishedJob) -> LegacyJob:
    fields = job_fields(job)
    same = {name: fields[name] for name in LegacyJob.model_fields if name in fields and name != "status"}
    return LegacyJob.model_construct(
        job_id=job.id, type=job.kind, params=fields["input"], status=OLD_WORDS[fields["status"]], **same
    )
