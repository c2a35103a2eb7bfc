"""A file of system schedules, as TOML or YAML say it, and what a sync made of it, as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, ValidationError

from duly.domain.amounts import parse_amount, written_amount
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_POOL, GRAPH_RETRY, GRAPH_RUN, LONGEST_TIMEOUT_MS, OnCrash, graph_id_of
from duly.domain.governance import Fate, Governed, Synced
from duly.domain.ids import PoolName
from duly.domain.payloads import payload_of, value_of
from duly.domain.policies import Policies
from duly.domain.pools import DEFAULT_POOL
from duly.domain.schedules import Schedule, ScheduleState, Target
from duly.domain.texts import name_of, text_of, whole_number_of
from duly.wire import cadences
from duly.wire.pointers import Asked, pointer_of
from duly.wire.schedules import AnyCatchUp, AnyOverlap, Input, Retry
from duly.wire.shapes import Shape
from duly.wire.suggestions import unknown

_POLICIES = ("overlap", "catch_up", "catch_up_cap", "jitter_ms")
_OF_GRAPHS = ("model", "max_cost", "on_crash")
_EXAMPLE = '[schedules.cleanup], then target = "cleanup" and every = "1h"'


class GovernedSchedule(cadences.CadenceFields):
    """Either `graph` or `target` says what runs; whatever is left out has its default."""

    graph: str | None = None
    target: str | None = None
    input: Input = Field(default_factory=dict)
    model: str | None = None
    max_cost: str | None = None
    on_crash: Annotated[OnCrash | None, Field(strict=False)] = None
    enabled: bool | None = None
    overlap: AnyOverlap | None = None
    catch_up: AnyCatchUp | None = None
    catch_up_cap: int | None = None
    jitter_ms: int | None = None
    pool: str | None = None
    priority: int = 0
    retry: Retry | None = None
    timeout_ms: int | None = None


class Drift(Shape):
    field: str
    before: Any
    after: Any


class SyncedSchedule(Shape):
    id: str
    fate: Fate
    drift: Annotated[list[Drift], Field(description="The fields that changed.")]
    held: Annotated[bool, Field(description="Somebody had paused it, and it stays so.")]
    revision: int


class SyncReport(Shape):
    dry_run: bool
    created: int
    updated: int
    unchanged: int
    paused: int
    items: list[SyncedSchedule]


def governed_from(read: Any, defaults: Policies) -> list[Governed]:
    """What the file says; raises InvalidInput naming the key's path, what is wrong with it, and what to do."""
    if not isinstance(read, Mapping) or "schedules" not in read:
        raise InvalidInput("schedules", "is missing", fix=f"write {_EXAMPLE}; an empty [schedules] pauses all")
    for name in read:
        if name != "schedules":
            raise InvalidInput(_path(name), unknown(str(name), ["schedules"], what="key"), fix=f"write {_EXAMPLE}")
    named = read["schedules"]
    if not isinstance(named, Mapping):
        raise InvalidInput("schedules", f"is a {type(named).__name__}", fix=f"write {_EXAMPLE}")
    return [_governed(name, given, defaults) for name, given in named.items()]


def _governed(name: Any, given: Any, defaults: Policies) -> Governed:
    name_of(name, field=_path("schedules", name))
    if not isinstance(given, Mapping):
        raise InvalidInput(_path("schedules", name), f"is a {type(given).__name__}", fix=f"write {_EXAMPLE}")
    try:
        return _governed_of(name, GovernedSchedule.model_validate(dict(given)), defaults)
    except ValidationError as wrong:
        raise _of_shape(name, wrong) from None
    except InvalidInput as wrong:
        steps = pointer_of(wrong, Asked(GovernedSchedule, given)).split("/")[1:]
        path = _path("schedules", name, *steps)
        raise InvalidInput(path, wrong.reason, fix=wrong.fix, position=wrong.position) from None


def _of_shape(name: str, wrong: ValidationError) -> InvalidInput:
    first = wrong.errors()[0]
    path = _path("schedules", name, *first["loc"])
    more = f", and {len(wrong.errors()) - 1} more are wrong" if len(wrong.errors()) > 1 else ""
    if first["type"] == "extra_forbidden":
        *steps, last = first["loc"]
        said = unknown(str(last), Asked(GovernedSchedule).known(*steps), what="key")
        return InvalidInput(path, said + more, fix="see the list of keys in docs/schedules.md")
    return InvalidInput(path, first["msg"].removeprefix("Value error, ") + more, fix="correct it; nothing was changed")


def _governed_of(name: str, given: GovernedSchedule, defaults: Policies) -> Governed:
    policies = {each: value for each in _POLICIES if (value := getattr(given, each)) is not None}
    return Governed(
        name=name,
        cadence=cadences.cadence_of({each: getattr(given, each) for each in cadences.FIELDS}),
        target=_target_of(given),
        policies=replace(defaults, **policies),
        enabled=given.enabled,
        graph_id=given.graph,
    )


def _target_of(given: GovernedSchedule) -> Target:
    if (given.graph is None) == (given.target is None):
        said = "is given beside graph" if given.graph else "is missing, and so is graph"
        raise InvalidInput("target", said, fix="give exactly one of target and graph")
    if given.graph is not None:
        return _graph_target(given)
    for each in _OF_GRAPHS:
        if getattr(given, each) is not None:
            raise InvalidInput(each, "means nothing beside target", fix="give it with graph, or leave it out")
    return Target(
        kind=given.target or "",
        payload=payload_of(given.input, field="input"),
        pool=PoolName(given.pool or DEFAULT_POOL),
        priority=given.priority,
        retry=(given.retry or Retry()).policy(),
        timeout_ms=given.timeout_ms,
    )


def _graph_target(given: GovernedSchedule) -> Target:
    if given.model is not None and "model" in given.input:
        raise InvalidInput("model", "is given in input, too", fix="give it once")
    model = {} if given.model is None else {"model": text_of(given.model, field="model", longest=200)}
    params: dict[str, Any] = {
        "graph_id": _graph_id(given.graph),
        "input": {**given.input, **model},
        "on_crash": (given.on_crash or OnCrash.RESUME).value,
    }
    if given.max_cost is not None:
        params["max_cost"] = written_amount(parse_amount(given.max_cost, field="max_cost"))
    if given.timeout_ms is not None:
        params["timeout_ms"] = whole_number_of(given.timeout_ms, field="timeout_ms", least=1, most=LONGEST_TIMEOUT_MS)
    payload_of(params["input"], field="input")
    return Target(
        kind=GRAPH_RUN,
        payload=payload_of(params, field="input"),
        pool=PoolName(given.pool or GRAPH_POOL),
        priority=given.priority,
        retry=GRAPH_RETRY if given.retry is None else given.retry.policy(),
    )


def _graph_id(graph: str | None) -> str:
    try:
        return graph_id_of(graph)
    except InvalidInput as wrong:
        raise InvalidInput("graph", wrong.reason, fix=wrong.fix) from None


def report_shape(lines: Sequence[Synced], *, dry_run: bool) -> SyncReport:
    counts = {fate.value: sum(line.fate is fate for line in lines) for fate in Fate}
    return SyncReport(dry_run=dry_run, items=[_line_shape(line) for line in lines], **counts)


def _line_shape(line: Synced) -> SyncedSchedule:
    revision = line.after.revision
    return SyncedSchedule(id=line.id, fate=line.fate, drift=_drift(line), held=line.is_held, revision=revision)


def _drift(line: Synced) -> list[Drift]:
    if line.before is None:
        return []
    before, after = _fields(line.before), _fields(line.after)
    names = dict.fromkeys([*before, *after])
    return [
        Drift(field=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _fields(schedule: Schedule) -> dict[str, Any]:
    """In the words of the file."""
    target, policies = schedule.target, schedule.policies
    timing = {name: _shown(value) for name, value in cadences.flat(schedule.cadence).items()}
    return {
        **timing,
        **_asked(target),
        "pool": target.pool,
        "priority": target.priority,
        "retry": Retry.of(target.retry).model_dump(),
        **{name: getattr(policies, name) for name in _POLICIES},
        "enabled": schedule.state is ScheduleState.ACTIVE,
    }


def _asked(target: Target) -> dict[str, Any]:
    params = value_of(target.payload)
    if target.kind != GRAPH_RUN:
        return {"target": target.kind, "input": params, "timeout_ms": target.timeout_ms}
    given = dict(params.get("input") or {})
    return {
        "graph": params.get("graph_id"),
        "model": given.pop("model", None),
        "input": given,
        "max_cost": params.get("max_cost"),
        "on_crash": params.get("on_crash"),
        "timeout_ms": params.get("timeout_ms"),
        "grant": params.get("grant_id"),
    }


def _shown(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else value.isoformat()


def _path(*steps: Any) -> str:
    return ".".join(str(step)[:64] for step in steps)
