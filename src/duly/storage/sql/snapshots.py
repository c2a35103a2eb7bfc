"""What jobs will be, as JSON: templates and members of groups keep it in one column, because nothing looks inside."""

import json
from typing import Any

from duly.domain.ids import PoolName
from duly.domain.jobs import NewJob
from duly.domain.payloads import Payload, value_of
from duly.domain.retries import RetryPolicy
from duly.domain.templates import Command, NewTemplate, Snapshot


def snapshot_text(snapshot: Snapshot) -> str:
    return _compact(
        {
            **_job_value(snapshot.new),
            "run_at": snapshot.new.run_at,
            "command": snapshot.command and snapshot.command.as_value(),
            "schema": snapshot.schema and value_of(snapshot.schema),
            "webhook_url": snapshot.webhook_url,
            "template": snapshot.template,
            "template_version": snapshot.template_version,
        }
    )


def snapshot_from(text: str) -> Snapshot:
    value = json.loads(text)
    return Snapshot(
        new=NewJob(run_at=value["run_at"], kind=value["kind"], **_job_fields(value)),
        command=_command_from(value["command"]),
        schema=None if value["schema"] is None else Payload(_compact(value["schema"])),
        webhook_url=value["webhook_url"],
        template=value["template"],
        template_version=value["template_version"],
    )


def template_text(asked: NewTemplate) -> str:
    return _compact(
        {
            **_job_value(asked.new),
            "kind": asked.kind,
            "command": asked.command and asked.command.as_value(),
            "schema": asked.schema_text and value_of(asked.schema_text),
            "webhook_url": asked.webhook_url,
        }
    )


def template_from(name: str, text: str) -> NewTemplate:
    value = json.loads(text)
    return NewTemplate(
        name=name,
        kind=value["kind"],
        command=_command_from(value["command"]),
        schema=value["schema"],
        webhook_url=value["webhook_url"],
        **_job_fields(value),
    )


def _job_value(new: NewJob) -> dict[str, Any]:
    return {
        "kind": new.kind,
        "params": value_of(new.payload),
        "lane": new.lane,
        "pool": new.pool,
        "resources": list(new.resources),
        "priority": new.priority,
        "max_attempts": new.retry.max_attempts,
        "backoff_ms": new.retry.backoff_ms,
        "backoff_cap_ms": new.retry.backoff_cap_ms,
        "timeout_ms": new.timeout_ms,
    }


def _job_fields(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "params": value["params"],
        "lane": value["lane"],
        "pool": PoolName(value["pool"]),
        "resources": tuple(PoolName(name) for name in value["resources"]),
        "priority": value["priority"],
        "retry": RetryPolicy(
            max_attempts=value["max_attempts"],
            backoff_ms=value["backoff_ms"],
            backoff_cap_ms=value["backoff_cap_ms"],
        ),
        "timeout_ms": value["timeout_ms"],
    }


def _command_from(value: dict[str, Any] | None) -> Command | None:
    return None if value is None else Command.from_value(value)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
