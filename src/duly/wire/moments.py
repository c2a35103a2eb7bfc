"""Instants as RFC 3339 writes them: always with an offset when read, always with Z when written."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from duly.domain.instants import Instant, instant_of, moment_of, written

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_FIX = "is no instant: write it as 2026-03-29T01:00:00Z"


def moment_from(value: Any) -> Any:
    """An aware datetime in UTC; numbers and times without an offset would mean another instant to somebody."""
    if value is None or isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _WRITTEN.fullmatch(value):
        raise ValueError(_FIX)
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(_FIX) from None


def _shown(moment: datetime | None) -> str | None:
    return None if moment is None else written(instant_of(moment, field="moment"))


Moment = Annotated[
    datetime,
    BeforeValidator(moment_from),
    PlainSerializer(_shown, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-29T01:00:00Z"]}),
]


def moment_or_none(instant: Instant | None) -> datetime | None:
    return None if instant is None else moment_of(instant)
