"""Times as people write them on a command line."""

from datetime import datetime

from duly.domain.cadence import InvalidInterval, every
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Instant, instant_of, moment_of

_EXAMPLE = "2026-03-29T01:00:00Z"


def since_from(text: str, *, now: Instant) -> Instant:
    """An instant, or how long ago: `12h`, `7d`."""
    try:
        return Instant(now - every(text).seconds * SECOND)
    except InvalidInterval:
        return _instant_from(text, field="--since", fix=f"write {_EXAMPLE}, or 12h, or 7d")


def when_from(text: str, *, field: str, now: Instant) -> datetime:
    """An instant, or how long ago: `12h`, `7d`."""
    try:
        return moment_of(Instant(now - every(text).seconds * SECOND))
    except InvalidInterval:
        return moment_of(_instant_from(text, field=field, fix=f"write {_EXAMPLE}, or 12h, or 7d"))


def moment_from(text: str, *, field: str) -> datetime:
    """An instant, with its zone."""
    return moment_of(_instant_from(text, field=field, fix=f"write {_EXAMPLE}"))


def slot_from(text: str) -> int:
    """A UTC second."""
    instant = _instant_from(text, field="SLOT", fix=f"write {_EXAMPLE}")
    second, fraction = divmod(instant, SECOND)
    if fraction:
        raise InvalidInput("SLOT", "is not a whole second, and every slot is", fix=f"write {_EXAMPLE}")
    return second


def _instant_from(text: str, *, field: str, fix: str) -> Instant:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(field, f"{text[:40]!r} is no instant", fix=fix) from None
    if moment.tzinfo is None:
        raise InvalidInput(field, f"{text[:40]!r} has no zone, so it names no instant", fix=fix)
    return instant_of(moment, field=field)
