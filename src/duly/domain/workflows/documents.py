"""A document of a workflow, read: which actions run, in which order, and when."""

import json
from collections.abc import Mapping
from typing import Any

from duly.domain.amounts import parse_amount
from duly.domain.dags import MOST_NODES, address_of, fields_of, nodes_of
from duly.domain.errors import InvalidInput
from duly.domain.executions import LONGEST_TIMEOUT_MS, TIMEOUT_MS, OnCrash
from duly.domain.payloads import Payload, json_of, payload_of, value_of
from duly.domain.texts import whole_number_of
from duly.domain.workflows.names import MOST_VERSIONS, name_of
from duly.domain.workflows.plans import Elsewhere, Plan
from duly.domain.workflows.triggers import triggers_of

MOST_AT_ONCE = 100

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
_EXECUTOR_FIELDS = ("url", "callback", "deadline_ms")


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
        triggers=triggers_of(given.get("triggers")),
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
