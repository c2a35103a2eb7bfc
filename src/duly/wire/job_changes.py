"""What is asked of jobs that are there: other params, another place, another try. In JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.application.retries import MOST_RETRIED, FailedFilter, Retried
from duly.domain.amounts import Amount
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.instants import instant_of
from duly.domain.jobs import Job as LiveJob
from duly.wire.estimates import Cost, MaxCost, cost_shape
from duly.wire.jobs import Job, job_fields
from duly.wire.moments import Moment
from duly.wire.shapes import Shape

MOVES = ("before", "after", "swap", "place", "next", "priority")


class JobPatch(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"params": {"topic": "weather"}}]})

    params: Annotated[dict[str, Any], Field(description="All of them: these take the place of those it has.")]


class Move(Shape):
    """Exactly one of the fields. A job that is moved next to one of another priority takes that priority."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"place": 1}]})

    before: Annotated[str | None, Field(description="A job that it is to run right before.")] = None
    after: Annotated[str | None, Field(description="A job that it is to run right after.")] = None
    swap: Annotated[str | None, Field(description="A job that it changes places with.")] = None
    place: Annotated[
        int | None, Field(ge=1, le=10_000, description="Its place among what is ready in its pool, counted from 1.")
    ] = None
    next: Annotated[bool | None, Field(description="true: it runs next in its pool.")] = None
    priority: Annotated[int | None, Field(description="Its priority; it keeps its place among equals.")] = None

    def given(self) -> tuple[str, Any]:
        said = [(name, value) for name in MOVES if (value := getattr(self, name)) is not None]
        if len(said) != 1 or said[0] == ("next", False):
            raise InvalidInput("move", "says not one place", fix=f"give exactly one of {', '.join(MOVES)}")
        return said[0]


class Arrangement(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"jobs": ["job_02", "job_01"]}]})

    jobs: Annotated[
        list[str], Field(min_length=1, max_length=200, description="Jobs of one pool, in the order they are to run.")
    ]


class QueuedJob(Job):
    place: Annotated[int, Field(description="Counted from 1, among all that is ready in the pool.")]


class RetryRequest(Shape):
    """Which failed jobs are meant. To try exactly what a preview showed, give its `jobs`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "digest", "cap": 100}]})

    pool: str | None = None
    kind: str | None = None
    since: Annotated[Moment | None, Field(description="Ended at this instant or later.")] = None
    until: Annotated[Moment | None, Field(description="Ended before this instant.")] = None
    jobs: Annotated[list[str] | None, Field(description="Only these, named by their last attempts.")] = None
    cap: Annotated[int, Field(ge=1, le=MOST_RETRIED, description="How many at most, the newest first.")] = 100
    max_cost: MaxCost = None

    def meant(self) -> FailedFilter:
        return FailedFilter(
            pool=self.pool,
            kind=self.kind,
            since=None if self.since is None else instant_of(self.since, field="since"),
            until=None if self.until is None else instant_of(self.until, field="until"),
            jobs=None if self.jobs is None else tuple(map(JobId, self.jobs)),
        )


class RetryPreview(Shape):
    count: int
    more: Annotated[bool, Field(description="More have failed than the cap lets through.")]
    jobs: Annotated[list[str], Field(description="The last attempts of what would be tried again, newest first.")]
    cost: Annotated[Cost, Field(description="Of these jobs.")]
    fits: Annotated[bool, Field(description="Whether it would be taken with this max_cost.")]


class SkippedRetry(Shape):
    id: str
    reason: str


class RetriedJobs(RetryPreview):
    """`count` and `jobs` are what was meant, `retried` the new jobs, `skipped` what could not be tried again."""

    retried: list[str]
    skipped: list[SkippedRetry]


def queued_job_shape(place: int, job: LiveJob) -> QueuedJob:
    return QueuedJob.model_construct(**job_fields(job), place=place)


def retry_preview_shape(retried: Retried, max_cost: Amount | None = None) -> RetryPreview:
    return RetryPreview(
        count=len(retried.jobs),
        more=retried.more,
        jobs=list(retried.jobs),
        cost=cost_shape(retried.cost),
        fits=retried.cost.fits(max_cost),
    )


def retried_shape(retried: Retried) -> RetriedJobs:
    return RetriedJobs(
        count=len(retried.jobs),
        more=retried.more,
        jobs=list(retried.jobs),
        cost=cost_shape(retried.cost),
        fits=True,
        retried=[put.job_id for put in retried.puts],
        skipped=[SkippedRetry(id=job_id, reason=why) for job_id, why in retried.skipped],
    )
