"""What people write on a command line, read into what Duly means by it."""

import json
import sys
from pathlib import Path
from typing import Any

from duly.domain.cadence import InvalidInterval, every
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Micros

_LARGEST_INPUT = 4_194_304


def object_from(text: str | None, *, field: str, example: str = '{"name": "value"}') -> dict[str, Any] | None:
    """A JSON object: as it stands, from `@file`, or from stdin as `-`."""
    if text is None:
        return None
    try:
        value = json.loads(_source(text, field))
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidInput(field, f"is no JSON{where}", fix=f"write '{example}', @file or -") from None
    if not isinstance(value, dict):
        raise InvalidInput(field, f"is a JSON {_kind(value)}, not an object", fix=f"write '{example}'")
    return value


def span_from(text: str, *, field: str) -> Micros:
    """`90s`, `1h30m`, `2d`, or `250ms`."""
    number = text.removesuffix("ms")
    if number != text and number.isascii() and number.isdigit() and len(number) <= 9:
        return Micros(int(number) * 1_000)
    try:
        return Micros(every(text).seconds * SECOND)
    except InvalidInterval:
        raise InvalidInput(field, f"{text[:40]!r} is not a span of time", fix="write 90s, 1h30m or 2d") from None


def milliseconds_from(text: str | None, *, field: str) -> int | None:
    return None if text is None else span_from(text, field=field) // 1_000


def _source(text: str, field: str) -> str:
    try:
        if text == "-":
            return sys.stdin.read(_LARGEST_INPUT)
        if text.startswith("@"):
            return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8"
        named = text.removeprefix("@")[:200]
        raise InvalidInput(field, f"{named}: {reason}", fix="name a file that can be read") from None
    return text


def _kind(value: object) -> str:
    names = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
    return names.get(type(value), "value")
