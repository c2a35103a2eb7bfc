"""Templates and what is put from them, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue

from duly.domain.errors import InvalidInput
from duly.domain.ids import Lane, PoolName
from duly.domain.instants import moment_of
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import RetryPolicy
from duly.domain.templates import Command as DomainCommand
from duly.domain.templates import NewTemplate as DomainNewTemplate
from duly.domain.templates import ResultAs
from duly.domain.templates import Template as DomainTemplate
from duly.wire.jobs import JobRetry, require_own_lane
from duly.wire.moments import Moment
from duly.wire.shapes import Shape

_EXAMPLE: dict[str, JsonValue] = {
    "name": "digest",
    "kind": "digest",
    "params": {"topic": "news"},
    "schema": {"properties": {"topic": {"type": "string"}}, "required": ["topic"]},
}
_PUT: dict[str, JsonValue] = {"params": {"topic": "sports"}, "key": "digest:sports"}

Kind = Annotated[str | None, Field(description="The handler that does its jobs; or give a command.")]
Params = Annotated[dict[str, Any], Field(description="What a job is given unless it says otherwise, name by name.")]
ParamsSchema = Annotated[
    dict[str, Any] | None, Field(alias="schema", description="JSON Schema of the params: a stated part of it.")
]
Resources = Annotated[list[str], Field(description="Other pools that a job takes a place of while it runs.")]


class Command(Shape):
    """A program to run: its words, what is added to its environment, and its folder. There is no shell."""

    argv: Annotated[list[str], Field(min_length=1)]
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    result: Annotated[
        ResultAs | None, Field(strict=False, description="json: the last line that it prints is the job's result.")
    ] = None

    def meant(self) -> DomainCommand:
        try:
            return DomainCommand(argv=tuple(self.argv), env=self.env, cwd=self.cwd, result=self.result)
        except InvalidInput as wrong:
            raise InvalidInput(f"command.{wrong.field}", wrong.reason, fix=wrong.fix, position=wrong.position) from None


class _Named(Shape):
    name: str


class _Mould(Shape):
    """What both a new template and a change of one may say."""

    kind: Kind = None
    command: Command | None = None
    params: Params = Field(default_factory=dict)
    params_schema: ParamsSchema = None
    lane: str | None = None
    pool: str = DEFAULT_POOL
    resources: Resources = Field(default_factory=list)
    priority: int = 0
    retry: JobRetry = JobRetry()
    timeout_ms: int | None = None
    webhook_url: str | None = None


class NewTemplate(_Mould, _Named):
    """Whatever is left out has its default. Exactly one of `kind` and `command` says what runs."""

    model_config = ConfigDict(serialize_by_alias=True, json_schema_extra={"examples": [_EXAMPLE]})


class TemplatePatch(_Mould):
    """Any of the fields; those left out stay. Giving a kind takes the place of a command, and the other way round."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"params": {"topic": "weather"}, "priority": 5}]})


class Template(NewTemplate):
    model_config = ConfigDict(json_schema_extra={"examples": []})

    owner: str
    version: Annotated[int, Field(description="Counts its changes from 1; the ETag begins with it.")]
    created_at: Moment
    updated_at: Moment


class NewJobFrom(Shape):
    """What this job says beside its template, or in its place."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PUT]})

    params: Annotated[dict[str, Any], Field(description="In the places of the template's, name by name.")] = Field(
        default_factory=dict
    )
    key: str | None = None
    lane: str | None = None
    priority: int | None = None
    run_at: Annotated[Moment | None, Field(description="Not before; at once if none is given.")] = None


def new_template_of(new: NewTemplate) -> DomainNewTemplate:
    return DomainNewTemplate(name=new.name, **_meant({name: getattr(new, name) for name in _FIELDS}))


def changed_template(template: DomainTemplate, patch: TemplatePatch) -> DomainNewTemplate:
    """The template with what the patch names in its place."""
    asked = template.asked
    given = _meant({name: getattr(patch, name) for name in patch.model_fields_set})
    if given.get("kind") is not None and "command" not in given:
        given["command"] = None
    if given.get("command") is not None and "kind" not in given:
        given["kind"] = None
    kept = {name: getattr(asked, name) for name in map(_domain_name, _FIELDS)}
    return DomainNewTemplate(name=asked.name, **{**kept, **given})


_FIELDS = tuple(name for name in NewTemplate.model_fields if name != "name")


def _domain_name(name: str) -> str:
    return "schema" if name == "params_schema" else name


def _meant(given: dict[str, Any]) -> dict[str, Any]:
    meant = {_domain_name(name): value for name, value in given.items()}
    if meant.get("command") is not None:
        meant["command"] = meant["command"].meant()
    if "retry" in meant:
        meant["retry"] = RetryPolicy(**meant["retry"].model_dump())
    if "resources" in meant:
        meant["resources"] = tuple(map(PoolName, meant["resources"]))
    if meant.get("lane") is not None:
        require_own_lane(meant["lane"])
        meant["lane"] = Lane(meant["lane"])
    return meant


def command_shape(command: DomainCommand) -> Command:
    return Command.model_construct(
        argv=list(command.argv), env=dict(command.env), cwd=command.cwd, result=command.result
    )


def template_shape(template: DomainTemplate) -> Template:
    asked = template.asked
    return Template.model_construct(
        name=asked.name,
        kind=asked.kind,
        command=None if asked.command is None else command_shape(asked.command),
        params=asked.params,
        params_schema=asked.schema,
        lane=asked.lane,
        pool=asked.pool,
        resources=list(asked.resources),
        priority=asked.priority,
        retry=JobRetry.model_construct(
            max_attempts=asked.retry.max_attempts,
            backoff_ms=asked.retry.backoff_ms,
            backoff_cap_ms=asked.retry.backoff_cap_ms,
        ),
        timeout_ms=asked.timeout_ms,
        webhook_url=asked.webhook_url,
        owner=template.owner,
        version=template.version,
        created_at=moment_of(template.created_at),
        updated_at=moment_of(template.updated_at),
    )
