"""A workflow: a name with numbered versions, each a document that says which actions run, in which order, and when."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from duly.domain.amounts import parse_amount
from duly.domain.cadence import Cadence, InvalidZone, cron
from duly.domain.dags import MOST_NODES, Node, address_of, fields_of, nodes_of, params_needed
from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.executions import LONGEST_TIMEOUT_MS, TIMEOUT_MS, OnCrash
from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import Instant
from duly.domain.payloads import Payload, json_of, payload_of, value_of
from duly.domain.policies import Policies
from duly.domain.texts import whole_number_of

SCHEDULE_BASED = "schedule_based"
PROVIDER = "dag"
MOST_TRIGGERS = 100
MOST_VERSIONS = 1_000_000
MOST_AT_ONCE = 100

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.ASCII)
_TRIGGER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
_FIELDS = (
    "name",
    "version",
    "description",
    "params",
    "nodes",
    "triggers",
    "on_crash",
    "timeout_ms",
    "max_cost",
    "concurrency",
    "executor",
)
_TRIGGER_FIELDS = (
    "id",
    "type",
    "cron_expr",
    "timezone",
    "start_at",
    "end_at",
    "jitter_ms",
    "overlap_policy",
    "catchup_policy",
    "params",
)
_EXECUTOR_FIELDS = ("url", "callback", "deadline_ms")
_SAID = {"overlap": "overlap_policy", "catch_up": "catchup_policy"}
_POLICIES = {"overlap": "overlap_policy", "catch_up": "catchup_policy", "jitter_ms": "jitter_ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One that is `schedule_based`; others are kept in the document for whoever understands them."""

    id: str
    cadence: Cadence
    policies: Mapping[str, Any]
    params: Mapping[str, Any]

    def policies_over(self, defaults: Policies) -> Policies:
        return Policies(**{**{name: getattr(defaults, name) for name in Policies.__slots__}, **self.policies})


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An executor that is called with the document; with `callback` it says later how the run ended."""

    url: str
    callback: bool
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a document says. All that may be wrong with it was refused when it was read."""

    name: str
    version: int | None
    nodes: tuple[Node, ...]
    triggers: tuple[Trigger, ...]
    params: Mapping[str, Any]
    on_crash: OnCrash
    timeout_ms: int
    max_cost: str | None
    concurrency: int
    executor: Elsewhere | None
    document: Payload
    """Names in order, without the version: what says the same is written alike."""

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.document.encode()).hexdigest()

    @property
    def actions(self) -> Mapping[str, str]:
        """The registered actions it names, each with the first node that does."""
        named: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node.action, str):
                named.setdefault(node.action, node.id)
        return named

    @property
    def longest_ms(self) -> int:
        """An executor elsewhere fails by its own deadline, not because whoever waits for it gives up before."""
        if self.executor is None:
            return self.timeout_ms
        return min(max(self.timeout_ms, self.executor.deadline_ms + 60_000), LONGEST_TIMEOUT_MS)

    def input_for(self, params: Mapping[str, Any] | None, *, field: str = "params") -> dict[str, Any]:
        """The params of a run over the document's own; one that a node needs and nobody gives is refused."""
        given = {**self.params, **value_of(payload_of(None if params is None else dict(params), field=field))}
        for name, where in params_needed(self.nodes).items():
            if name not in given:
                raise InvalidInput(f"{field}.{name}", f"is missing: {where} refers to it")
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """`deployed`: whether its name starts runs. Its versions stay when it no longer is."""

    name: str
    owner: Owner
    newest: int
    deployed: bool
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowVersion:
    """Never changed and never deleted: runs name it."""

    name: str
    version: int
    owner: Owner
    hash: str
    document: Payload
    created_at: Instant

    @property
    def plan(self) -> Plan:
        return plan_of(value_of(self.document))

    @property
    def graph_id(self) -> str:
        return graph_id_of(self.name, self.version)


class Bound(NamedTuple):
    """A schedule that runs a workflow: for a trigger of its document, or upserted by somebody (no trigger)."""

    schedule_id: ScheduleId
    owner: Owner
    workflow: str
    trigger: str | None


class NodeState(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """What became of a node in a run; `tries` counts those that were begun, through all attempts."""

    run_id: str
    node: str
    owner: Owner
    state: NodeState
    tries: int = 0
    result: Payload | None = None
    error_code: str | None = None
    error: str | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRun:
    """Which version an execution runs, from its first attempt to its last."""

    run_id: str
    owner: Owner
    workflow: str
    version: int
    begun_at: Instant


class CalledBack(StrEnum):
    STARTED = "STARTED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class CallBack(NamedTuple):
    """What an executor elsewhere said last; `value` is its result, or why it failed."""

    status: CalledBack
    value: Payload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A run that an owner asked for under a key: one execution, whoever asks for it again."""

    key: str
    owner: Owner
    workflow: str
    version: int
    scheduled_for: Instant | None
    job_id: str
    request_hash: str = field(repr=False)
    created_at: Instant

    @property
    def execution_key(self) -> str:
        """Of its owner alone: nobody can take the key of another's run, or of a slot."""
        return launch_key(self.owner, self.key)


def plan_of(document: object) -> Plan:
    """What is wrong with it is refused with its place; how many nodes there are is looked at before anything else."""
    if not isinstance(document, dict):
        raise InvalidInput("workflow", f"is a {type(document).__name__}", fix="give an object with name and nodes")
    if isinstance(nodes := document.get("nodes"), list) and len(nodes) > MOST_NODES:
        raise InvalidInput("nodes", f"has {len(nodes)} nodes", fix=f"use 1 to {MOST_NODES}, or several workflows")
    json_of(document, field="workflow")
    given = fields_of(document, _FIELDS, "workflow", needed=("name", "nodes"))
    params = value_of(payload_of(given.get("params"), field="params"))
    plan = Plan(
        name=name_of(given["name"]),
        version=_whole(given, "version", None, most=MOST_VERSIONS),
        nodes=nodes_of(given["nodes"]),
        triggers=_triggers_of(given.get("triggers")),
        params=params,
        on_crash=_on_crash_of(given.get("on_crash", OnCrash.RESUME)),
        timeout_ms=_whole(given, "timeout_ms", TIMEOUT_MS, most=LONGEST_TIMEOUT_MS) or TIMEOUT_MS,
        max_cost=_cost_of(given.get("max_cost")),
        concurrency=_whole(given, "concurrency", 8, most=MOST_AT_ONCE) or 8,
        executor=_executor_of(given.get("executor")),
        document=_canonical(given),
    )
    for trigger in plan.triggers:
        plan.input_for(trigger.params, field=f"triggers.{trigger.id}.params")
    return plan


def name_of(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput("name", f"{value!a:.60} is no name of a workflow", fix="use 1 to 63 of a-z 0-9 _ . -")
    return value


def version_of(value: object) -> int:
    return whole_number_of(value, field="version", least=1, most=MOST_VERSIONS)


def graph_id_of(name: str, version: int | None) -> str:
    return f"{PROVIDER}:{name}" if version is None else f"{PROVIDER}:{name}@{version}"


def named_by(graph_id: str) -> tuple[str, int | None] | None:
    """The workflow and version that a graph's id names; None if it names none."""
    provider, _, rest = graph_id.partition(":")
    name, at, version = rest.partition("@")
    if provider != PROVIDER or not _NAME.fullmatch(name) or (at and not re.fullmatch(r"[1-9][0-9]{0,6}", version)):
        return None
    return name, int(version) if at else None


def schedule_id_of(name: str, trigger: str) -> ScheduleId:
    return ScheduleId(f"workflow:{name}:{trigger}")


def run_key(schedule_id: str, slot: int) -> str:
    """The key of a slot in one word: the same on every machine, and of no other slot."""
    return hashlib.sha256(f"{schedule_id}:{slot}".encode()).hexdigest()


def launch_key(owner: str, key: str) -> str:
    return "launch/" + hashlib.sha256(f"{owner}\n{key}".encode()).hexdigest()


def _canonical(given: Mapping[str, Any]) -> Payload:
    kept = {name: value for name, value in given.items() if name != "version"}
    return Payload(json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def _whole(given: Mapping[str, Any], name: str, default: int | None, *, most: int) -> int | None:
    value = given.get(name, default)
    return None if value is None else whole_number_of(value, field=name, least=1, most=most)


def _on_crash_of(value: object) -> OnCrash:
    if value not in list(OnCrash):
        raise InvalidInput("on_crash", f"{value!a:.40} is none", fix=f"use one of {', '.join(OnCrash)}")
    return OnCrash(str(value))


def _cost_of(value: object) -> str | None:
    if value is not None:
        parse_amount(value, field="max_cost")
    return value  # type: ignore[return-value]


def _executor_of(given: object) -> Elsewhere | None:
    if given is None:
        return None
    fields = fields_of(given, _EXECUTOR_FIELDS, "executor", needed=("url",))
    if not isinstance(callback := fields.get("callback", False), bool):
        raise InvalidInput("executor.callback", f"is a {type(callback).__name__}", fix="use true or false")
    deadline = fields.get("deadline_ms", TIMEOUT_MS)
    return Elsewhere(
        url=address_of(fields["url"], "executor.url"),
        callback=callback,
        deadline_ms=whole_number_of(deadline, field="executor.deadline_ms", least=1, most=LONGEST_TIMEOUT_MS),
    )


def _triggers_of(given: object) -> tuple[Trigger, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MOST_TRIGGERS:
        raise InvalidInput("triggers", "is no list of triggers", fix=f"give a list of at most {MOST_TRIGGERS}")
    found: dict[str, Trigger] = {}
    for index, each in enumerate(given):
        at = f"triggers[{index}]"
        if not isinstance(each, dict) or not isinstance(each.get("type"), str):
            raise InvalidInput(f"{at}.type", "is missing", fix=f"name it, such as {SCHEDULE_BASED}")
        if each["type"] != SCHEDULE_BASED:
            continue
        trigger = _trigger_of(each, at)
        if trigger.id in found:
            raise InvalidInput(f"{at}.id", f"{trigger.id!r} is there twice", fix="give each trigger an id")
        found[trigger.id] = trigger
    return tuple(found.values())


def _trigger_of(given: Mapping[str, Any], at: str) -> Trigger:
    fields = fields_of(given, _TRIGGER_FIELDS, at, needed=("cron_expr",))
    trigger_id = fields.get("id", "schedule")
    if not isinstance(trigger_id, str) or not _TRIGGER.fullmatch(trigger_id):
        raise InvalidInput(f"{at}.id", f"{trigger_id!a:.60} is no id", fix="use 1 to 63 of A-Z a-z 0-9 _ . -")
    try:
        cadence = cron_of(fields["cron_expr"], fields.get("timezone", "UTC"))
        bounds = {name: _moment_of(fields.get(name), name) for name in ("start_at", "end_at")}
        given_policies = {name: fields[said] for name, said in _POLICIES.items() if said in fields}
        Policies(**given_policies)
    except InvalidInput as error:
        said = _SAID.get(error.field, error.field)
        raise InvalidInput(f"{at}.{said}", error.reason, fix=error.fix, position=error.position) from None
    return Trigger(
        id=trigger_id,
        cadence=cadence.within(**bounds) if any(bounds.values()) else cadence,
        policies=given_policies,
        params=value_of(payload_of(fields.get("params"), field=f"{at}.params")),
    )


def cron_of(expr: Any, zone: Any) -> Cadence:
    try:
        return cron(expr, zone)
    except InvalidZone as error:
        raise InvalidInput("timezone", error.reason, fix=error.fix) from None
    except InvalidInput as error:
        where = "" if error.field in ("expr", "expression") else f"{error.field}: "
        raise InvalidInput("cron_expr", f"{where}{error.reason}", fix=error.fix, position=error.position) from None


def _moment_of(value: object, name: str) -> datetime | None:
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidInput(name, f"{value!a:.40} is no instant", fix="write it as 2026-03-29T01:00:00Z")
    return found


class UnknownWorkflow(NotFound):
    code = "unknown_workflow"

    def __init__(self, name: str, version: int | None = None) -> None:
        which = "" if version is None else f", version {version}"
        super().__init__(f"there is no workflow {name!r}{which}")
        self.name = name
        self.version = version


class WorkflowTaken(Conflict):
    """The name, or the id of a schedule that it would have, is somebody else's."""

    code = "workflow_taken"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is taken; choose another name")


class VersionTaken(Conflict):
    """A version that is stored never changes."""

    code = "workflow_version_taken"

    def __init__(self, name: str, version: int, newest: int) -> None:
        super().__init__(
            f"version {version} of workflow {name!r} is not the next: the newest is {newest}, and another document"
        )
        self.newest = newest


class NotDeployed(Conflict):
    code = "workflow_not_deployed"

    def __init__(self, name: str) -> None:
        super().__init__(f"workflow {name!r} is no longer deployed; deploy it again, or name a version")


class LateCallBack(Conflict):
    """The run is over, or was never to be called back about."""

    code = "late_call_back"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} waits for no call-back")
