"""A cadence as flat fields: cron, every or at, with its zone, anchor and bounds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from duly.domain.cadence import Bounded, Cadence, Cron, Interval, Once, UnreadableCron, cron, every, once
from duly.domain.cadence.instants import utc_of
from duly.domain.cadence.words import duration_in_letters
from duly.domain.errors import InvalidInput
from duly.wire.moments import Moment
from duly.wire.shapes import Shape

KINDS = ("cron", "every", "at")
FIELDS = (*KINDS, "timezone", "anchor", "start_at", "end_at")
_ONE = "give exactly one of cron, every and at"
# What means nothing beside another kind, and so goes when the kind changes.
_ONLY_OF = {"timezone": "cron", "anchor": "every"}


class CadenceFields(Shape):
    """Exactly one of cron, every and at says when."""

    cron: Annotated[
        str | None,
        Field(description="5 fields, 6 with seconds first, or a macro such as @daily.", examples=["0 9 * * MON-FRI"]),
    ] = None
    every: Annotated[str | None, Field(description="A pace such as 15m, 90s, 1h30m or 2d.", examples=["15m"])] = None
    at: Annotated[Moment | None, Field(description="A single instant.")] = None
    timezone: Annotated[
        str | None,
        Field(description="The zone of cron; UTC if none is given.", examples=["Europe/Berlin"]),
    ] = None
    anchor: Annotated[Moment | None, Field(description="Where `every` counts from; 1970 if none is given.")] = None
    start_at: Annotated[Moment | None, Field(description="Nothing fires before it.")] = None
    end_at: Annotated[Moment | None, Field(description="Nothing fires after it.")] = None


def cadence_of(fields: Mapping[str, Any]) -> Cadence:
    """The cadence that flat fields say; raises InvalidInput naming the field."""
    given = [kind for kind in KINDS if fields.get(kind) is not None]
    if not given:
        raise InvalidInput("cron", "is missing, and so are every and at", fix=_ONE)
    if len(given) > 1:
        raise InvalidInput(given[1], f"is given beside {given[0]}", fix=_ONE)
    for name, kind in _ONLY_OF.items():
        if fields.get(name) is not None and given != [kind]:
            raise InvalidInput(name, f"means nothing beside {given[0]}", fix=f"give it with {kind}, or leave it out")
    cadence = _unbounded(given[0], fields)
    start_at, end_at = fields.get("start_at"), fields.get("end_at")
    return cadence if start_at is None and end_at is None else cadence.within(start_at=start_at, end_at=end_at)


def _unbounded(kind: str, fields: Mapping[str, Any]) -> Cadence:
    if kind == "cron":
        zone = fields.get("timezone")
        return cron(fields["cron"], "UTC" if zone is None else zone)
    if kind == "every":
        return every(fields["every"], anchor=fields.get("anchor"))
    return once(fields["at"])


def flat(cadence: Cadence) -> dict[str, str | datetime | None]:
    """The fields that say a cadence."""
    bounds: dict[str, str | datetime | None] = {}
    if isinstance(cadence, Bounded):
        bounds = {"start_at": _moment(cadence.first), "end_at": _moment(cadence.last)}
        cadence = cadence.cadence
    return {**dict.fromkeys(FIELDS), **_flat_unbounded(cadence), **bounds}


def _flat_unbounded(cadence: Cadence) -> dict[str, str | datetime | None]:
    if isinstance(cadence, (Cron, UnreadableCron)):
        return {"cron": cadence.expr, "timezone": cadence.tz}
    if isinstance(cadence, Interval):
        anchor = None if cadence.anchor_second == 0 else cadence.anchor
        return {"every": duration_in_letters(cadence.seconds), "anchor": anchor}
    if isinstance(cadence, Once):
        return {"at": cadence.at}
    raise TypeError(f"no fields say {type(cadence).__name__}")


def changed(cadence: Cadence, changes: Mapping[str, Any]) -> Cadence:
    """The cadence after some of its fields are changed; another kind leaves behind what only the old one had."""
    fields: dict[str, Any] = flat(cadence)
    if new := [kind for kind in KINDS if changes.get(kind) is not None]:
        fields.update(dict.fromkeys(KINDS))
        fields.update({name: None for name, kind in _ONLY_OF.items() if kind not in new})
    return cadence_of({**fields, **changes})


def _moment(second: int | None) -> datetime | None:
    return None if second is None else utc_of(second)
