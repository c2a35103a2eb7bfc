"""Answers as bytes: written once, so that what is kept for a replay is what was sent."""

import hashlib
from urllib.parse import quote

from pydantic import BaseModel
from starlette.responses import Response

from duly.wire.schedules import Schedule


def json_answer(shape: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(shape.model_dump_json(), status, headers, "application/json")


def schedule_answer(shape: Schedule, status: int = 200, *, if_none_match: str | None = None) -> Response:
    """Its ETag is the revision, then a digest: what can be edited, and what one looks at."""
    body = shape.model_dump_json().encode()
    tag = f'"{shape.revision}-{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if if_none_match is not None and _is_among(tag, if_none_match):
        return Response(status_code=304, headers=headers)
    if status == 201:
        headers["Location"] = f"/api/v1/schedules/{quote(shape.id, safe='')}"
    return Response(body, status, headers, "application/json")


def _is_among(tag: str, if_none_match: str) -> bool:
    given = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return tag in given or "*" in given
