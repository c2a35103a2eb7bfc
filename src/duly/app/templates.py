"""Templates that a program declares, and groups as it spells them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from duly.app.declared import DeclaredSchedule, Params, job_of, policies_given
from duly.app.durations import Duration
from duly.app.register import Register
from duly.bootstrap import Queue
from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.groups import NewMember
from duly.domain.ids import PoolName
from duly.domain.schedules import LONGEST_ID, TEMPLATE_PREFIX, Target
from duly.domain.templates import Command, NewTemplate, UnknownTemplate
from duly.domain.texts import text_of

# A job's function or name, a template's name, either with params, or a member that is spelled out.
Asked = Any
_OF_JOBS = ("retries", "backoff", "timeout", "pool", "priority", "lane")


class TemplateOptions(TypedDict, total=False):
    """What a template may say of its jobs beside those of its function, and of a schedule that runs it.

    `input` is what the schedule's runs are given in the places of the template's params.
    """

    retries: int
    backoff: Duration
    timeout: Duration | None
    pool: str
    priority: int
    lane: str | None
    resources: Sequence[str]
    webhook_url: str | None
    schedule: Cadence | None
    schedule_id: str | None
    input: Params | None
    overlap: str | None
    catch_up: str | None
    catch_up_cap: int | None
    jitter: Duration | int | None


def template_of(
    register: Register,
    name: str,
    job: Any,
    *,
    params: Params | None,
    schema: Mapping[str, Any] | None,
    options: TemplateOptions,
) -> tuple[NewTemplate, DeclaredSchedule | None]:
    """Whatever is not said here is as the job was declared, if this program declares it."""
    for option in options:
        if option not in TemplateOptions.__annotations__:
            raise InvalidInput(
                option, "is no option of a template", fix=f"use {', '.join(TemplateOptions.__annotations__)}"
            )
    told: Any = {name: options[name] for name in _OF_JOBS if name in options}  # type: ignore[literal-required]
    known = (
        None if isinstance(job, Command) or (isinstance(job, str) and job not in register.jobs) else register.job(job)
    )
    said = job_of("template", _elsewhere, None, told)
    made = NewTemplate(
        name=name,
        kind=None if isinstance(job, Command) else known.name if known is not None else job,
        command=job if isinstance(job, Command) else None,
        params=None if params is None else dict(params),
        schema=None if schema is None else dict(schema),
        lane=said.lane if known is None or "lane" in told else known.lane,
        pool=said.pool if known is None or "pool" in told else known.pool,
        resources=tuple(map(PoolName, options.get("resources", ()))),
        priority=said.priority if known is None or "priority" in told else known.priority,
        retry=said.retry if known is None or {"retries", "backoff"} & set(told) else known.retry,
        timeout_ms=said.timeout_ms if known is None or "timeout" in told else known.timeout_ms,
        webhook_url=options.get("webhook_url"),
    )
    return made, _schedule_of(made, options)


def _schedule_of(template: NewTemplate, options: TemplateOptions) -> DeclaredSchedule | None:
    cadence, given = options.get("schedule"), options.get("input")
    if cadence is None:
        for name in ("schedule_id", "input", "overlap", "catch_up", "catch_up_cap", "jitter"):
            if options.get(name) is not None:
                why = "says something of a schedule, and there is none"
                raise InvalidInput(name, why, fix="add schedule=every('1h')")
        return None
    if not isinstance(cadence, Cadence):
        raise InvalidInput("schedule", f"is a {type(cadence).__name__}", fix="use cron(…), every(…) or once(…)")
    return DeclaredSchedule(
        id=text_of(options.get("schedule_id") or template.name, field="schedule_id", longest=LONGEST_ID),
        cadence=cadence,
        target=Target(kind=TEMPLATE_PREFIX + template.name, params=None if given is None else dict(given)),
        given=policies_given(options),
    )


async def make_templates(queue: Queue, templates: Sequence[NewTemplate], *, owner: str) -> None:
    """Makes each what is declared; what is so already keeps its version. None is deleted: jobs may name it."""
    for asked in templates:
        try:
            there = await queue.templates.get(asked.name, owner=owner)
        except UnknownTemplate:
            await queue.templates.create(asked, owner=owner)
        else:
            if there.asked != asked:
                await queue.templates.update(asked, owner=owner, version=there.version)


def member_of(register: Register, asked: Asked) -> NewMember:
    """A job's function or name, or a template's name; with params as a pair."""
    if isinstance(asked, NewMember):
        return asked
    named, params = asked if isinstance(asked, tuple) else (asked, None)
    if isinstance(named, str) and named in register.templates:
        return NewMember(template=named, params=params)
    job = register.job(named)
    if params is None or not _has_references(params):
        job.require_fit(params)
    return NewMember(job=job.new(params))


def _has_references(params: Params) -> bool:
    return any(isinstance(value, Mapping) and set(value) == {"from", "path"} for value in params.values())


def _elsewhere(_: object) -> None:
    """A template is no handler."""
