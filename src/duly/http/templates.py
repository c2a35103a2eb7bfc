"""Routes of templates: define, look, change, delete, and put jobs from them."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path
from starlette.responses import Response

from duly.domain.ids import JobId, JobKey, Lane
from duly.domain.instants import instant_of
from duly.domain.jobs import PutOutcome
from duly.domain.pools import UnknownPool
from duly.domain.templates import NewTemplate, Template, TemplateChanged, TemplateExists, UnknownTemplate
from duly.domain.tokens import Role
from duly.http.answers import page_answer, tagged_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visit, Visiting
from duly.http.jobs import job_answer
from duly.http.parameters import Cursor, IfMatch, IfNoneMatch, Limit, Text, revision_from
from duly.http.problems import Refusal
from duly.wire import templates as wire
from duly.wire.jobs import JobDetail, require_own_lane
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/templates", tags=["templates"], route_class=Door)
Name = Annotated[Text, Path(min_length=1, max_length=255)]
_MOST_TRIES = 5


@router.post(
    "",
    status_code=201,
    response_model=wire.Template,
    summary="Define a template",
    response_description="The template as it was made.",
)
async def create_template(visit: Visiting, body: wire.NewTemplate) -> Response:
    """One that names a command is for admins to define: whoever names programs rules the worker's machine."""
    asked = wire.new_template_of(body)
    await _require_may_name(visit, asked)
    try:
        made = await visit.queue.templates.create(asked, owner=visit.caller.owner)
    except TemplateExists as taken:
        made = await _made_before(visit, taken, asked)
    location = f"/api/v1/templates/{quote(made.name, safe='')}"
    return tagged_answer(wire.template_shape(made), made.version, 201, location=location)


async def _made_before(visit: Visit, taken: TemplateExists, asked: NewTemplate) -> Template:
    """What an earlier execution of this request made, which could not say so; else its name is simply taken."""
    if not visit.is_repeated:
        raise taken
    try:
        found = await visit.queue.templates.get(taken.name, owner=visit.caller.owner)
    except UnknownTemplate:
        raise taken from None
    if found.asked != asked:
        raise taken
    return found


@router.get(
    "", response_model=Page[wire.Template], summary="List templates", response_description="A page of templates."
)
async def list_templates(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of name."""
    after = position_from(cursor, "templates")
    found = await visit.queue.templates.list(owner=visit.sees, after=after, most=limit + 1)
    return page_answer(Page[wire.Template], wire.template_shape, found, limit, "templates", key=lambda each: each.name)


@router.get(
    "/{name}",
    response_model=wire.Template,
    summary="Read a template",
    response_description="The template, with its ETag.",
)
async def get_template(visit: Visiting, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    found = await visit.queue.templates.get(name, owner=visit.sees)
    return tagged_answer(wire.template_shape(found), found.version, if_none_match=if_none_match)


@router.patch(
    "/{name}",
    response_model=wire.Template,
    summary="Change a template",
    response_description="The template as it is now.",
)
async def update_template(visit: Visiting, name: Name, body: wire.TemplatePatch, if_match: IfMatch = None) -> Response:
    """What is named is changed, for jobs that are put from now on; those that were put stay as they are."""
    expected = revision_from(if_match)
    tries_left = _MOST_TRIES
    while True:
        read = await visit.queue.templates.get(name, owner=visit.sees)
        _require_match(read, expected)
        asked = wire.changed_template(read, body)
        await _require_may_name(visit, asked, before=read.asked)
        tries_left -= 1
        try:
            changed = await visit.queue.templates.update(asked, owner=visit.sees, version=read.version)
        except TemplateChanged:
            # Read again; if the caller named a version, that look says that it is another one by now.
            if not tries_left:
                raise
        else:
            return tagged_answer(wire.template_shape(changed), changed.version)


@router.delete(
    "/{name}",
    status_code=204,
    response_class=Response,
    summary="Delete a template",
    response_description="It is deleted.",
)
async def delete_template(visit: Visiting, name: Name, if_match: IfMatch = None) -> Response:
    """Its jobs, and groups that have it in them, run as they were put; a schedule that names it has runs that fail."""
    try:
        await visit.queue.templates.delete(name, owner=visit.sees, version=revision_from(if_match))
    except TemplateChanged as changed:
        raise Refusal(412, str(changed), code=changed.code) from changed
    return Response(status_code=204)


@router.post(
    "/{name}/jobs",
    status_code=201,
    response_model=JobDetail,
    responses={200: {"model": JobDetail, "description": "A live job had the key: this one, which stands for it."}},
    summary="Put a job from a template",
    response_description="The job, which is durable now, and stays as it is.",
)
async def put_from_template(visit: Visiting, name: Name, body: wire.NewJobFrom | None = None) -> Response:
    """A snapshot of the template, with what is given here in its places. It is the template's owner's."""
    asked = wire.NewJobFrom() if body is None else body
    require_own_lane(asked.lane)
    put = await visit.queue.jobs.put_from(
        name,
        asked.params,
        owner=visit.sees,
        key=None if asked.key is None else JobKey(asked.key),
        lane=None if asked.lane is None else Lane(asked.lane),
        priority=asked.priority,
        run_at=None if asked.run_at is None else instant_of(asked.run_at, field="run_at"),
        job_id=None if visit.draw is None else JobId(f"job_{visit.draw}"),
    )
    return await job_answer(visit, put.job_id, 201 if put.outcome is PutOutcome.CREATED else 200)


async def _require_may_name(visit: Visit, asked: NewTemplate, *, before: NewTemplate | None = None) -> None:
    """A program only if the caller is an admin; pools only if they are there."""
    is_kept = before is not None and before.command == asked.command
    if asked.command is not None and not is_kept:
        visit.caller.require(Role.ADMIN)
    known = {pool.name for pool in await visit.queue.pools.all()}
    for field, names in (("pool", (asked.pool,)), ("resources", asked.resources)):
        for name in names:
            if name not in known:
                raise UnknownPool(name, field=field)


def _require_match(template: Template, expected: int | None) -> None:
    if expected is not None and template.version != expected:
        changed = TemplateChanged(template.name, version=template.version)
        raise Refusal(412, str(changed), code=changed.code)
