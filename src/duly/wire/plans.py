"""From what a request says about a schedule to what the core takes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.payloads import payload_of
from duly.domain.policies import Policies
from duly.domain.retries import DEFAULT_RETRY, NO_RETRY
from duly.domain.schedules import Schedule, Target, template_in
from duly.wire import cadences
from duly.wire.jobs import require_own_kind
from duly.wire.schedules import NewSchedule, SchedulePatch

_POLICIES = ("overlap", "catch_up", "catch_up_cap", "jitter_ms")
_TARGET = ("target", "input", "pool", "priority", "retry", "timeout_ms")


def cadence_of(new: cadences.CadenceFields) -> Cadence:
    return cadences.cadence_of({name: getattr(new, name) for name in cadences.FIELDS})


def target_of(new: NewSchedule) -> Target:
    require_own_kind(new.target, field="kind")
    if template_in(new.target) is not None and "retry" in new.model_fields_set:
        raise _is_the_templates("retry")
    return Target(
        kind=new.target,
        params=new.input,
        pool=PoolName(new.pool),
        priority=new.priority,
        retry=new.retry.policy(),
        timeout_ms=new.timeout_ms,
    )


def policies_of(new: NewSchedule, defaults: Policies) -> Policies:
    given = {name: value for name in _POLICIES if (value := getattr(new, name)) is not None}
    return replace(defaults, **given)


def changes_of(schedule: Schedule, patch: SchedulePatch) -> dict[str, Any]:
    """What `edit` is to be told: only what the patch names is made anew."""
    given = patch.given()
    changes: dict[str, Any] = {}
    if timing := _of(given, cadences.FIELDS):
        changes["cadence"] = cadences.changed(schedule.cadence, timing)
    if asked := _of(given, _TARGET):
        changes["target"] = _changed_target(schedule.target, asked)
    if policies := _of(given, _POLICIES):
        changes["policies"] = replace(schedule.policies, **policies)
    if "enabled" in given:
        changes["enabled"] = given["enabled"]
    return changes


def _changed_target(target: Target, asked: Mapping[str, Any]) -> Target:
    """A template in the place of a handler, or the other way round, begins with the defaults of its own."""
    kind = asked.get("target", target.kind)
    require_own_kind(kind, field="kind")
    if template_in(kind) is not None and "retry" in asked:
        raise _is_the_templates("retry")
    if (template_in(kind) is None) != (target.template is None):
        retry = NO_RETRY if template_in(kind) else DEFAULT_RETRY
        target = Target(kind=kind, payload=target.payload, retry=retry)
    return Target(
        kind=asked.get("target", target.kind),
        payload=payload_of(asked["input"], field="params") if "input" in asked else target.payload,
        pool=PoolName(asked.get("pool", target.pool)),
        priority=asked.get("priority", target.priority),
        retry=asked["retry"].policy() if "retry" in asked else target.retry,
        timeout_ms=asked.get("timeout_ms", target.timeout_ms),
    )


def _is_the_templates(field: str) -> InvalidInput:
    return InvalidInput(field, "is for the template to say", fix="leave it out, or change the template")


def _of(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}
