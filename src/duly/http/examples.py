"""One line of shell for each operation, made of the API's own description."""

import json
from typing import Any

ADDRESS = "localhost:8470"
_NAMES = {
    "schedules": "morning-digest",
    "runs": "run_01",
    "jobs": "job_01",
    "legacy": "job_01",
    "tokens": "tok_01",
    "pools": "default",
    "templates": "digest",
    "groups": "grp_01",
    "direct": "report",
    "webhooks": "whe_01",
    "deliveries": "dlv_01",
    "workflows": "morning-news",
    "cron": "morning-news",
    "reviews": "review_01",
    "accounts": "acct_01",
    "grants": "grant_01",
    "budgets": "bud_01",
}
_FIRST = ("id", "kind", "target", "owner")
_LONGEST_LINE = 45
_QUERIES = {
    "list_runs": "?schedule_id=morning-digest&status=error",
    "list_jobs": "?ended=true&limit=10",
    "list_schedules": "?limit=100",
    "delete_schedule": "?withdraw=true",
}
_OPTIONS = {
    "follow_run": ("-N",),
    "trigger_schedule": ("-H 'Idempotency-Key: deploy-417'",),
    "put_job": ("-H 'Idempotency-Key: order-99'",),
}


def curl_of(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any], address: str = ADDRESS) -> str:
    """What a caller on this machine types."""
    name, (noun,) = operation["operationId"], operation["tags"]
    called = _NAMES.get(noun, "")
    of_run = "exe_01" if noun in ("workflows", "cron") else called
    target = path.format(id=called, name=called, run_id=of_run) + _QUERIES.get(name, "")
    body = _body(operation, schemas)
    is_told_by_body = method == "post" and body is not None
    words = [
        "curl",
        *([] if method == "get" or is_told_by_body else [f"-X {method.upper()}"]),
        *_OPTIONS.get(name, ()),
        f"'{address}{target}'" if "&" in target else f"{address}{target}",
        *([] if body is None else [f"--json {_quoted(_written(body))}"]),
    ]
    return " ".join(words)


def _written(body: dict[str, Any]) -> str:
    """What it is called comes first; what is long has a line for each field."""
    ordered = {field: body[field] for field in sorted(body, key=lambda field: field not in _FIRST)}
    text = json.dumps(ordered, ensure_ascii=False)
    return text if len(text) <= _LONGEST_LINE else json.dumps(ordered, ensure_ascii=False, indent=2)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any] | None:
    """The example of a shape, or one made of the examples of its fields."""
    for media in operation.get("requestBody", {}).get("content", {}).values():
        reference = media["schema"].get("anyOf", [media["schema"]])[0]["$ref"]
        shape = schemas[reference.rpartition("/")[2]]
        for example in shape.get("examples", []):
            return dict(example)
        return {field: of["examples"][0] for field, of in shape["properties"].items()}
    return None
