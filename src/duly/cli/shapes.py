"""JSON as commands print it: the shapes of the HTTP API, loaded only when some are printed."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duly.application.groups import Again
from duly.application.retries import Retried
from duly.domain.amounts import Amount
from duly.domain.backfills import Backfill
from duly.domain.cadence import Cadence
from duly.domain.executions import ExecutionEvent
from duly.domain.groups import Group, Member, Progress
from duly.domain.instants import SECOND, Instant, written
from duly.domain.jobs import FinishedJob, Job
from duly.domain.logs import LogLine
from duly.domain.pools import Pool
from duly.domain.reviews import Review
from duly.domain.runs import Run
from duly.domain.schedules import Fire, Revision, Schedule
from duly.domain.templates import Template
from duly.domain.tokens import Token

if TYPE_CHECKING:
    from duly.wire.shapes import Shape


Json = dict[str, Any]


def page(items: Sequence[Json], following: str | None = None) -> Json:
    """`following` is where the next one begins, if there may be one."""
    return {"items": list(items), "next_cursor": following}


def schedule_shape(schedule: Schedule, last_run: Run | None = None, warning: str | None = None) -> Json:
    from duly.wire import schedules

    return _json(schedules.schedule_shape(schedule, last_run, warning))


def revision_shape(revision: Revision) -> Json:
    from duly.wire import schedules

    return _json(schedules.revision_shape(revision))


def fire_shape(fire: Fire) -> Json:
    from duly.wire import previews

    return _json(previews.fire_shape(fire))


def cadence_preview_shape(cadence: Cadence, now: datetime, *, count: int) -> Json:
    from duly.wire import previews

    return _json(previews.preview_shape(cadence, count, now=now))


def backfill_shape(asked: Backfill, max_cost: Amount | None = None) -> Json:
    from duly.wire import previews

    return _json(previews.backfill_preview_shape(asked, max_cost))


def backfilled_shape(runs: Sequence[Run]) -> Json:
    from duly.wire import previews

    return _json(previews.backfilled_shape(list(runs)))


def run_shape(run: Run) -> Json:
    from duly.wire import runs

    return _json(runs.run_shape(run))


def run_detail_shape(run: Run, attempts: Sequence[Job | FinishedJob], trace_url: str | None = None) -> Json:
    from duly.wire import runs

    return _json(runs.run_detail_shape(run, attempts, trace_url))


def job_shape(job: Job | FinishedJob) -> Json:
    from duly.wire import jobs

    return _json(jobs.job_shape(job))


def queued_job_shape(place: int, job: Job) -> Json:
    from duly.wire import job_changes

    return _json(job_changes.queued_job_shape(place, job))


def retry_preview_shape(preview: Retried, max_cost: Amount | None = None) -> Json:
    from duly.wire import job_changes

    return _json(job_changes.retry_preview_shape(preview, max_cost))


def group_retry_shape(again: Again, *, cap: int | None, max_cost: Amount | None) -> Json:
    from duly.wire import group_retries

    return _json(group_retries.group_retry_shape(again, cap=cap, max_cost=max_cost))


def retried_shape(done: Retried) -> Json:
    from duly.wire import job_changes

    return _json(job_changes.retried_shape(done))


def template_shape(template: Template) -> Json:
    from duly.wire import templates

    return _json(templates.template_shape(template))


def group_shape(group: Group) -> Json:
    from duly.wire import groups

    return _json(groups.group_shape(group))


def group_detail_shape(group: Group, progress: Progress) -> Json:
    from duly.wire import groups

    return _json(groups.group_detail_shape(group, progress))


def member_shape(member: Member) -> Json:
    from duly.wire import groups

    return _json(groups.member_shape(member))


def log_line_shape(line: LogLine) -> Json:
    from duly.wire import jobs

    return _json(jobs.line_shape(line))


def graph_event_shape(event: ExecutionEvent) -> Json:
    from duly.wire import executions

    return _json(executions.event_shape(event))


def pool_shape(pool: Pool) -> Json:
    from duly.wire import pools

    return _json(pools.pool_shape(pool))


def review_shape(review: Review) -> Json:
    from duly.wire import reviews

    return _json(reviews.review_shape(review))


def token_shape(token: Token) -> Json:
    from duly.wire import tokens

    return _json(tokens.token_shape(token))


def created_token_shape(token: Token, secret: str) -> Json:
    from duly.wire import tokens

    return _json(tokens.created_token_shape(token, secret))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The fields that change, in words."""
    return [f"{name}: {before[name]} → {after[name]}" for name in before if before[name] != after[name]]


def at(instant: Instant | None) -> str | None:
    return None if instant is None else written(instant)


def at_second(second: int | None) -> str | None:
    return None if second is None else written(Instant(second * SECOND))


def _json(shape: "Shape") -> Json:
    return shape.model_dump(mode="json")
