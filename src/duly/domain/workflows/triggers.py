"""When a document says that it runs, read."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from duly.domain.cadence import Cadence, InvalidZone, cron
from duly.domain.dags import fields_of
from duly.domain.errors import InvalidInput
from duly.domain.payloads import payload_of, value_of
from duly.domain.policies import Policies
from duly.domain.workflows.plans import Trigger

SCHEDULE_BASED = "schedule_based"
MOST_TRIGGERS = 100

_TRIGGER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
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
_SAID = {"overlap": "overlap_policy", "catch_up": "catchup_policy"}
_POLICIES = {"overlap": "overlap_policy", "catch_up": "catchup_policy", "jitter_ms": "jitter_ms"}


def triggers_of(given: object) -> tuple[Trigger, ...]:
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
