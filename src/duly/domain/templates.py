"""Templates: the moulds of jobs. A job is a snapshot: it keeps what its template said when it was put."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.ids import JobKey, Lane, Owner, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import NewJob
from duly.domain.payloads import EMPTY, Payload, json_of, payload_of, value_of
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DEFAULT_RETRY, RetryPolicy
from duly.domain.schemas import check, schema_of
from duly.domain.texts import name_of, storable_of, text_of

COMMAND_KIND = "duly.command"
MOST_WORDS = 1_000
LONGEST_WORD = 100_000


class ResultAs(StrEnum):
    """What the last line that a program prints is."""

    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to run: its words, what is added to its environment, and its folder. There is no shell.

    With `result` the last line that it prints is its job's result.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    result: ResultAs | Literal["json"] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.argv, str) or not self.argv or len(self.argv) > MOST_WORDS:
            raise InvalidInput(
                "argv", "is no list of words", fix="name the program and each argument: there is no shell"
            )
        for index, word in enumerate(self.argv):
            storable_of(word, field=f"argv[{index}]", longest=LONGEST_WORD)
        for name, value in self.env.items():
            text_of(name, field="env")
            if "=" in name:
                raise InvalidInput("env", f"{name[:60]!r} is no name of a variable", fix="leave the = out")
            storable_of(value, field=f"env.{name}", longest=LONGEST_WORD)
        if self.cwd is not None:
            text_of(self.cwd, field="cwd", longest=4_000)
        object.__setattr__(self, "argv", tuple(self.argv))
        if self.result is not None:
            object.__setattr__(self, "result", _result_of(self.result))

    def as_value(self) -> dict[str, Any]:
        """What is not asked for is not said: commands that were kept before there was a result read alike."""
        told = {} if self.result is None else {"result": str(self.result)}
        return {"argv": list(self.argv), "env": dict(self.env), "cwd": self.cwd, **told}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> "Command":
        return cls(argv=tuple(value["argv"]), env=value["env"], cwd=value["cwd"], result=value.get("result"))


def _result_of(given: object) -> ResultAs:
    if given != ResultAs.JSON:
        raise InvalidInput("result", f"{str(given)[:40]!r} is no way to read a result", fix="use json, or leave it out")
    return ResultAs.JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTemplate:
    """What an owner asks for: a function's `kind` or a `command`. All that may be wrong with it is refused here."""

    name: str
    kind: str | None = None
    command: Command | None = None
    params: Mapping[str, Any] | None = None
    schema: Mapping[str, Any] | None = None
    lane: Lane | None = None
    pool: PoolName = DEFAULT_POOL
    resources: tuple[PoolName, ...] = ()
    priority: int = 0
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_ms: int | None = None
    webhook_url: str | None = None
    schema_text: Payload | None = field(default=None, init=False)
    new: NewJob = field(init=False)

    def __post_init__(self) -> None:
        name_of(self.name, field="name")
        if (self.kind is None) == (self.command is None):
            raise InvalidInput("kind", "a template runs a function or a command", fix="give kind or command, not both")
        if self.kind is not None and str(self.kind).startswith("duly."):
            raise InvalidInput("kind", "names that begin with duly. are Duly's own", fix="choose another name")
        if self.webhook_url is not None:
            webhook_of(self.webhook_url)
        if self.schema is not None:
            object.__setattr__(self, "schema_text", schema_of(self.schema, field="schema"))
            # Defaults need not be complete: what a template requires may be given with each job.
            given = {keyword: rule for keyword, rule in self.schema.items() if keyword != "required"}
            check({} if self.params is None else self.params, given, field="params")
        object.__setattr__(self, "new", self._job())
        # As they will be read again.
        object.__setattr__(self, "params", value_of(self.new.payload))
        object.__setattr__(self, "resources", self.new.resources)

    def _job(self) -> NewJob:
        return NewJob(
            kind=COMMAND_KIND if self.kind is None else self.kind,
            params={} if self.params is None else self.params,
            lane=self.lane,
            pool=self.pool,
            resources=self.resources,
            priority=self.priority,
            retry=self.retry,
            timeout_ms=self.timeout_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the jobs of a chain came from: whose they are, and what their template said of params and webhook."""

    owner: Owner
    template: str | None = None
    template_version: int | None = None
    schema: Payload | None = None
    webhook_url: str | None = None

    def payload_for(self, params: object, *, of: Payload, kind: str) -> Payload:
        """The payload of a job that has `of`, with other params, if the template it came from takes them."""
        text = checked(params, self.schema)
        return rewrapped(text, of=of) if kind == COMMAND_KIND else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a job will be. `new` has the params as the handler knows them; a command travels beside them."""

    new: NewJob
    command: Command | None = None
    schema: Payload | None = None
    webhook_url: str | None = None
    template: str | None = None
    template_version: int | None = None

    def payload(self, params: object | None = None) -> Payload:
        """Checked by the schema; `params` stand in for the snapshot's own."""
        text = checked(value_of(self.new.payload) if params is None else params, self.schema)
        if self.command is None:
            return text
        return json_of({"command": self.command.as_value(), "params": value_of(text)}, field="params")

    def origin(self, owner: Owner) -> Origin:
        return Origin(
            owner=owner,
            template=self.template,
            template_version=self.template_version,
            schema=self.schema,
            webhook_url=self.webhook_url,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template as the store has it; whoever changes it names the version that the change was made from."""

    asked: NewTemplate
    owner: Owner
    version: int
    created_at: Instant
    updated_at: Instant

    @property
    def name(self) -> str:
        return self.asked.name

    def snapshot(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        key: JobKey | None = None,
        lane: Lane | None = None,
        priority: int | None = None,
        run_at: Instant | None = None,
    ) -> Snapshot:
        """What is given here takes the place of the template's, and of its params name by name."""
        asked, new = self.asked, self.asked.new
        merged = {**value_of(new.payload), **value_of(payload_of(params, field="params"))}
        return Snapshot(
            new=replace(
                new,
                params=merged,
                key=key,
                lane=new.lane if lane is None else lane,
                priority=new.priority if priority is None else priority,
                run_at=run_at,
            ),
            command=asked.command,
            schema=asked.schema_text,
            webhook_url=asked.webhook_url,
            template=asked.name,
            template_version=self.version,
        )


def checked(params: object, schema: Payload | None) -> Payload:
    text = EMPTY if params is None else payload_of(params, field="params")
    if schema is not None:
        check(value_of(text), value_of(schema), field="params")
    return text


def command_of(payload: Payload) -> tuple[Command, Payload]:
    """The program that a command's job names, and the params for it."""
    whole = value_of(payload)
    try:
        named = whole["command"]
        return Command.from_value(named), payload_of(whole["params"], field="params")
    except (TypeError, KeyError, AttributeError):
        raise InvalidInput("params", "this job names no command", fix="put it again, from a template") from None


def rewrapped(params: Payload, *, of: Payload) -> Payload:
    """A command's payload with other params."""
    named, _ = command_of(of)
    return json_of({"command": named.as_value(), "params": value_of(params)}, field="params")


def webhook_of(url: object) -> str:
    text = text_of(url, field="webhook_url", longest=2_000)
    scheme, _, rest = text.partition("://")
    if scheme not in ("http", "https") or not rest or rest[0] in "/?#" or " " in text:
        raise InvalidInput("webhook_url", "is no address of a web server", fix="use https://host/path")
    return text


class UnknownTemplate(NotFound):
    code = "unknown_template"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no template {name!r}")
        self.name = name


class TemplateExists(Conflict):
    code = "template_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a template {name!r} already; update it, or choose another name")
        self.name = name


class TemplateChanged(Conflict):
    """Somebody else's change came first: look at it, then decide again."""

    code = "template_changed"

    def __init__(self, name: str, *, version: int) -> None:
        super().__init__(f"template {name!r} has changed meanwhile: it is at version {version} now")
        self.name = name
        self.version = version
