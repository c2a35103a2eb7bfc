"""Instants below the public API: whole microseconds since 1970 in UTC, so that both databases order them alike."""

from datetime import UTC, datetime, timedelta
from typing import NewType

from duly.domain.errors import InvalidInput

Instant = NewType("Instant", int)
Micros = NewType("Micros", int)

SECOND = Micros(1_000_000)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant_of(moment: datetime, *, field: str) -> Instant:
    """The instant of an aware datetime; a naive one would mean another moment on every machine."""
    if not isinstance(moment, datetime) or moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(field, "is not a datetime with a zone", fix="pass an aware datetime, e.g. with tzinfo=UTC")
    return Instant((moment - _EPOCH) // _MICROSECOND)


def moment_of(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def written(instant: Instant) -> str:
    """For people to read, and to give back: `2026-03-29T01:00:00Z`, with a fraction where there is one."""
    return moment_of(instant).replace(tzinfo=None).isoformat() + "Z"
