"""Schedules and what is asked about them, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue

from duly.domain.graph_targets import grant_of
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.payloads import value_of
from duly.domain.policies import CatchUp, Overlap
from duly.domain.retries import DEFAULT_RETRY, RetryPolicy
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import Revision as DomainRevision
from duly.domain.schedules import Schedule as DomainSchedule
from duly.domain.schedules import ScheduleState
from duly.wire.cadences import CadenceFields, flat
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape

AnyOverlap = Annotated[Overlap, Field(strict=False, description="What a slot does while another run is in flight.")]
AnyCatchUp = Annotated[CatchUp, Field(strict=False, description="What becomes of slots that an outage missed.")]
Input = Annotated[
    dict[str, Any],
    Field(description="The params that the handler is given.", examples=[{"topic": "news"}]),
]
TargetName = Annotated[
    str,
    Field(
        description="The handler that runs; or `template:NAME`, what that template says when a slot fires.",
        examples=["digest"],
    ),
]

_EXAMPLE: dict[str, JsonValue] = {
    "id": "morning-digest",
    "target": "digest",
    "input": {"topic": "news"},
    "cron": "0 9 * * MON-FRI",
    "timezone": "Europe/Berlin",
    "overlap": "skip",
}


class Retry(Shape):
    max_attempts: int = DEFAULT_RETRY.max_attempts
    backoff_ms: int = DEFAULT_RETRY.backoff_ms
    backoff_cap_ms: int = DEFAULT_RETRY.backoff_cap_ms

    def policy(self) -> RetryPolicy:
        return RetryPolicy(**self.model_dump())

    @classmethod
    def of(cls, policy: RetryPolicy) -> "Retry":
        return cls(max_attempts=policy.max_attempts, backoff_ms=policy.backoff_ms, backoff_cap_ms=policy.backoff_cap_ms)


class NewSchedule(CadenceFields):
    """Whatever is left out has its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: Annotated[str | None, Field(description="Drawn if none is given.")] = None
    target: TargetName
    input: Input = Field(default_factory=dict)
    enabled: Annotated[bool, Field(description="false: it begins paused.")] = True
    overlap: AnyOverlap | None = None
    catch_up: AnyCatchUp | None = None
    catch_up_cap: int | None = None
    jitter_ms: int | None = None
    pool: str = "default"
    priority: int = 0
    retry: Retry = Retry()
    timeout_ms: int | None = None


class SchedulePatch(CadenceFields):
    """Any of the fields; those left out stay. Giving null takes a field back to its default where it has one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"cron": "30 8 * * *", "enabled": False}]})

    target: TargetName = ""
    input: Input = Field(default_factory=dict)
    enabled: Annotated[bool, Field(description="false pauses, true resumes.")] = True
    overlap: AnyOverlap = Overlap.SKIP
    catch_up: AnyCatchUp = CatchUp.NONE
    catch_up_cap: int = 1
    jitter_ms: int = 0
    pool: str = "default"
    priority: int = 0
    retry: Retry = Retry()
    timeout_ms: int | None = None

    def given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class LastRun(Shape):
    id: str
    status: RunStatus
    scheduled_for: Moment
    started_at: Moment | None
    completed_at: Moment | None
    trace_id: str | None


class Plan(CadenceFields):
    """What runs, when, and under which policies."""

    words: Annotated[str, Field(description="The cadence in words.", examples=["At 09:00 on Monday, Europe/Berlin"])]
    target: TargetName
    input: Input
    pool: str
    priority: int
    retry: Retry
    timeout_ms: int | None
    overlap: Overlap
    catch_up: CatchUp
    catch_up_cap: int
    jitter_ms: int


class Schedule(Plan):
    id: str
    owner: str
    enabled: bool
    state: ScheduleState
    state_reason: str | None
    grant_id: Annotated[str | None, Field(description="Under which its runs act, if it runs a graph.")]
    revision: int
    next_run_at: Annotated[Moment | None, Field(description="The next slot.")]
    fire_at: Annotated[Moment | None, Field(description="When that slot fires: with jitter, not quite then.")]
    last_run_at: Moment | None
    last_run: LastRun | None
    created_at: Moment
    updated_at: Moment
    warnings: Annotated[
        list[str], Field(description="Of an active one: that no worker which is running has a handler for it.")
    ] = Field(default_factory=list)


class Revision(Plan):
    revision: int
    state: ScheduleState
    effective_from: Annotated[Moment, Field(description="It holds for slots later than this.")]
    recorded_at: Moment
    tz_version: str


def schedule_shape(schedule: DomainSchedule, last: Run | None, warning: str | None = None) -> Schedule:
    slot = None if schedule.next_slot is None else moment_of(Instant(schedule.next_slot * SECOND))
    return Schedule.model_construct(
        **_plan(schedule),
        id=schedule.id,
        owner=schedule.owner,
        enabled=schedule.state is ScheduleState.ACTIVE,
        state=schedule.state,
        state_reason=schedule.state_reason,
        grant_id=grant_of(schedule.target),
        revision=schedule.revision,
        next_run_at=slot,
        fire_at=moment_or_none(schedule.fire_at),
        last_run_at=moment_or_none(schedule.last_run_at),
        last_run=None if last is None else _last_run(last),
        created_at=moment_of(schedule.created_at),
        updated_at=moment_of(schedule.updated_at),
        warnings=[] if warning is None else [warning],
    )


def revision_shape(revision: DomainRevision) -> Revision:
    return Revision.model_construct(
        **_plan(revision),
        revision=revision.number,
        state=revision.state,
        effective_from=moment_of(Instant(revision.effective_from * SECOND)),
        recorded_at=moment_of(revision.recorded_at),
        tz_version=revision.tz_version,
    )


def _plan(plan: DomainSchedule | DomainRevision) -> dict[str, Any]:
    target, policies = plan.target, plan.policies
    return {
        **flat(plan.cadence),
        "words": plan.cadence.explain(),
        "target": target.kind,
        "input": value_of(target.payload),
        "pool": target.pool,
        "priority": target.priority,
        "retry": Retry.of(target.retry),
        "timeout_ms": target.timeout_ms,
        "overlap": policies.overlap,
        "catch_up": policies.catch_up,
        "catch_up_cap": policies.catch_up_cap,
        "jitter_ms": policies.jitter_ms,
    }


def _last_run(run: Run) -> LastRun:
    return LastRun.model_construct(
        id=run.id,
        status=run.status,
        scheduled_for=moment_of(run.scheduled_for),
        started_at=moment_or_none(run.started_at),
        completed_at=moment_or_none(run.completed_at),
        trace_id=run.trace_id,
    )
