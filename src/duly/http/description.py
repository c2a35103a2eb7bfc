"""The API's description: what FastAPI finds, with every problem listed and the ways in."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from duly.http.door import NOBODY, ROLE
from duly.wire.problems import MEDIA_TYPE, Problem

DESCRIPTION = (
    "Times are RFC 3339 with Z. Lists are `items` and `next_cursor`. Every error is `application/problem+json` with a "
    "stable `code`. A POST with an `Idempotency-Key` is executed once, and answered alike however often it is sent."
)
# Its path, its method, and what is said of it.
Operation = tuple[str, str, dict[str, Any]]
# Nouns and what is done to them, in the order in which one meets them.
TAGS = {
    "schedules": "What runs when. Made, looked at, changed, paused, run by hand, backfilled, asked why.",
    "runs": "What a schedule opened: one per slot, and those by hand. Looked at, followed, cancelled.",
    "jobs": "What workers do: one attempt each. Put, looked at, read, moved, changed, tried again, cancelled.",
    "templates": "The moulds of jobs: what runs, with which params, where and how often.",
    "groups": "Jobs that belong together, all at once or one after the other.",
    "direct": "An answer now, ahead of the queue, without a job.",
    "workflows": "Documents of actions, in versions. Deployed, looked at, run, undeployed.",
    "cron": "The same for deployers and executors elsewhere, in their own words.",
    "reviews": "What runs ask people. Looked at, decided, here or by a signed webhook.",
    "pools": "How much runs at once, shared by everybody.",
    "accounts": "Who pays. Opened, looked at, credited by admins.",
    "grants": "Leave to run graphs at an account's cost. Made, looked at, revoked.",
    "budgets": "What an account or a schedule may spend in a day, a week, a month or in all.",
    "tokens": "Who may call from elsewhere. For admins.",
    "webhooks": "Who is told of what has ended. Made, changed, given new secrets, disabled, tested.",
    "deliveries": "What became of telling them. Looked at, sent again.",
    "system": "Who asks, and how Duly is.",
    "legacy": "The older job routes, in the older words. Use the others; the headers say until when these work.",
}
_ORDER = (
    *("create_schedule", "list_schedules", "get_schedule", "update_schedule", "delete_schedule"),
    *("pause_schedule", "resume_schedule", "trigger_schedule", "list_upcoming", "list_schedule_runs"),
    *("explain_schedule", "list_revisions", "preview_cadence", "preview_backfill", "backfill_schedule"),
    *("list_runs", "get_run", "explain_run", "follow_run", "list_graph_events", "cancel_run"),
    *("put_job", "list_jobs", "get_job", "explain_job", "get_job_log", "edit_job", "cancel_job", "get_chain"),
    *("move_job", "reorder_jobs", "list_failed", "retry_job", "preview_retry", "retry_failed", "retry_job_run"),
    *("create_template", "list_templates", "get_template", "update_template", "delete_template", "put_from_template"),
    *(
        "create_group",
        "list_groups",
        "get_group",
        "explain_group",
        "list_members",
        "cancel_group",
        "preview_group_retry",
        "retry_group",
    ),
    *("list_pools", "get_pool", "update_pool", "list_queue"),
    *("deploy_workflow", "list_workflows", "get_workflow", "list_workflow_versions", "undeploy_workflow"),
    *("launch_workflow", "list_workflow_runs", "get_workflow_run", "explain_workflow_run"),
    *("upsert_cron_schedule", "pause_cron_schedule", "get_cron_schedule", "delete_cron_schedule", "list_cron_runs"),
    *("start_run", "call_back"),
    *("list_reviews", "get_review", "decide_review", "receive_decision"),
    *("create_account", "list_accounts", "get_account", "get_statement", "credit_account"),
    *("create_grant", "list_grants", "get_grant", "revoke_grant"),
    *("set_budget", "list_budgets", "get_budget", "delete_budget"),
    *("create_token", "list_tokens", "revoke_token"),
    *("create_webhook", "list_webhooks", "get_webhook", "update_webhook", "rotate_webhook", "test_webhook"),
    *("disable_webhook", "enable_webhook", "delete_webhook"),
    *("list_deliveries", "get_delivery", "resend_delivery"),
)
_REF = "#/components/schemas/{model}"
PROBLEMS = {
    400: "The body is not JSON.",
    401: "No valid token.",
    402: "A paid model, and an account with nothing to pay with.",
    403: "The caller's role does not cover this, or a page of another origin asks.",
    404: "There is no such thing, or not for this caller.",
    409: "Not in the state that things are in, or the same request is being executed.",
    412: "Somebody else changed it since it was read.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not sent as JSON.",
    421: "The server answers to loopback names only.",
    422: "What was given cannot mean anything, or is not known here; `errors` says where.",
    500: "The server failed.",
    502: "The handler of a direct call failed, and says why.",
    503: "The store cannot answer now; trying again is safe.",
    504: "A direct call did not end in time; it was stopped.",
}
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    409: {"Retry-After": "Seconds, while the same request is being executed."},
    503: {"Retry-After": "Seconds."},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request under the same key is executed once; with another body it is refused.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]{1,255}$"},
}
_PAYING = ("create_schedule", "update_schedule")
_METHODS = ("get", "post", "patch", "delete")


def described(api: FastAPI, describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if api.openapi_schema is not None:
        return api.openapi_schema
    schema = describe()
    schemas = schema["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    _, problems = models_json_schema([(Problem, "serialization")], ref_template=_REF)
    schemas.update(problems["$defs"])
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, method, operation in operations(schema):
        _complete(path, method, operation)
    schema["tags"] = [{"name": name, "description": said} for name, said in TAGS.items()]
    schema["paths"] = {path: schema["paths"][path] for path, _, _ in operations(schema)}
    api.openapi_schema = _with_plain_names(schema)
    return api.openapi_schema


def operations(schema: dict[str, Any]) -> Iterator[Operation]:
    """All there are, noun by noun."""
    found = [
        (path, method, item[method]) for path, item in schema["paths"].items() for method in _METHODS if method in item
    ]
    return iter(sorted(found, key=lambda each: _place(each[2])))


def _place(operation: dict[str, Any]) -> tuple[int, int]:
    name, (tag,) = operation["operationId"], operation["tags"]
    return list(TAGS).index(tag), _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _with_plain_names(schema: dict[str, Any]) -> dict[str, Any]:
    """`Page_Run_` and `Page[Run]`, as shapes with a parameter are called, as `RunPage`."""
    plain: dict[str, Any] = json.loads(re.sub(r"\bPage[_[]([A-Za-z]+)[_\]](?=\")", r"\1Page", json.dumps(schema)))
    return plain


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    is_open = operation.get(ROLE) == NOBODY
    operation["security"] = [] if is_open else [{"token": []}, {}]
    if method == "post":
        operation["parameters"] = [*operation.get("parameters", []), _KEY]
    for status in _statuses(path, method, operation, is_open=is_open):
        operation["responses"][str(status)] = _response(status)


def _statuses(path: str, method: str, operation: dict[str, Any], *, is_open: bool) -> list[int]:
    """Which problems an operation can have, told from what it takes."""
    operation["responses"].pop("422", None)
    found = {413, 421, 422, 500, 503} | (set() if is_open else {401, 403})
    names = {parameter["name"].lower() for parameter in operation.get("parameters", ())}
    if "requestBody" in operation:
        found |= {400, 415}
    if "{" in path or "schedule_id" in names or path.endswith(("/reorder", "/pause")):
        found.add(404)
    if operation["operationId"] in _PAYING:
        found.add(402)
    if "if-match" in names:
        found.add(412)
    if method != "get":
        found |= {409, 415}
    if operation["tags"] == ["direct"]:
        found |= {502, 504}
    return sorted(found)


def _response(status: int) -> dict[str, Any]:
    headers = {
        name: {"description": said, "schema": {"type": "string"}} for name, said in _HEADERS.get(status, {}).items()
    }
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": PROBLEMS[status], "content": content, **({"headers": headers} if headers else {})}
