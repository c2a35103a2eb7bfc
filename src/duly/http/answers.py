"""Answers as bytes: written once, so that what is kept for a replay is what was sent."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel
from starlette.responses import Response

from duly.http.cursors import cut
from duly.wire.schedules import Schedule
from duly.wire.shapes import Page

T = TypeVar("T")
S = TypeVar("S")


def json_answer(shape: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(shape.model_dump_json(), status, headers, "application/json")


def page_answer(
    page_of: type[Page[S]],
    shape: Callable[[T], S],
    found: Sequence[T],
    limit: int,
    listing: str,
    *,
    key: Callable[[T], str | int],
) -> Response:
    """One more than a page was asked for, to know whether another follows."""
    items, following = cut(found, limit, listing, key)
    return json_answer(page_of(items=[shape(each) for each in items], next_cursor=following))


def schedule_answer(shape: Schedule, status: int = 200, *, if_none_match: str | None = None) -> Response:
    location = f"/api/v1/schedules/{quote(shape.id, safe='')}" if status == 201 else None
    return tagged_answer(shape, shape.revision, status, location=location, if_none_match=if_none_match)


def tagged_answer(
    shape: BaseModel, number: int, status: int = 200, *, location: str | None = None, if_none_match: str | None = None
) -> Response:
    """Its ETag is the number of its last change, then a digest: what can be edited, and what one looks at."""
    body = shape.model_dump_json().encode()
    tag = f'"{number}-{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if if_none_match is not None and _is_among(tag, if_none_match):
        return Response(status_code=304, headers=headers)
    if location is not None:
        headers["Location"] = location
    return Response(body, status, headers, "application/json")


def _is_among(tag: str, if_none_match: str) -> bool:
    given = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return tag in given or "*" in given
