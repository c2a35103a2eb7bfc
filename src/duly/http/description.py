"""The API's description: what FastAPI finds, with every problem listed and the ways in."""

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
_REF = "#/components/schemas/{model}"
_SAID = {
    400: "The body is not JSON.",
    401: "No valid token.",
    403: "The caller's role does not cover this, or a page of another origin asks.",
    404: "There is no such thing, or not for this caller.",
    409: "Not in the state that things are in, or the same request is being executed.",
    412: "Somebody else changed it since it was read.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not sent as JSON.",
    421: "The server answers to loopback names only.",
    422: "What was given cannot mean anything, or is not known here; `errors` says where.",
    500: "The server failed.",
    503: "The store cannot answer now; trying again is safe.",
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
    return schema


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method in _METHODS:
            if method in item:
                yield path, method, item[method]


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
    if "{" in path or "schedule_id" in names:
        found.add(404)
    if "if-match" in names:
        found.add(412)
    if method != "get":
        found |= {409, 415}
    return sorted(found)


def _response(status: int) -> dict[str, Any]:
    headers = {
        name: {"description": said, "schema": {"type": "string"}} for name, said in _HEADERS.get(status, {}).items()
    }
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": _SAID[status], "content": content, **({"headers": headers} if headers else {})}
