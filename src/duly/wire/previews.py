"""What would be, in JSON: a cadence's fires, a backfill's slots. Nothing of it is saved."""

from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, Field

from duly.domain.amounts import Amount
from duly.domain.backfills import Backfill
from duly.domain.cadence import Bounded, Cadence, Cron, NoteKind
from duly.domain.instants import moment_of
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import Fire as DomainFire
from duly.wire.cadences import CadenceFields
from duly.wire.estimates import Cost, MaxCost, cost_shape
from duly.wire.moments import Moment
from duly.wire.shapes import Shape

NOTED = timedelta(days=366)


class Fire(Shape):
    slot: Moment
    fire_at: Annotated[Moment, Field(description="With jitter, not quite at its slot.")]


class CadencePreview(CadenceFields):
    model_config = ConfigDict(json_schema_extra={"examples": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}]})

    count: Annotated[int, Field(ge=1, le=100, description="How many fires to show.")] = 10


class PreviewedFire(Shape):
    at: Moment
    local: Annotated[str, Field(description="On the wall clock of its zone.", examples=["2026-03-29T03:00:00+02:00"])]


class ClockChange(Shape):
    at: Moment
    kind: NoteKind
    text: str


class PreviewedCadence(Shape):
    words: str
    fires: list[PreviewedFire]
    clock_changes: Annotated[
        list[ClockChange], Field(description="What clock changes of the next year move, skip or repeat.")
    ]


class BackfillRequest(Shape):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"start": "2026-03-01T00:00:00Z", "end": "2026-03-02T00:00:00Z", "cap": 50}]}
    )

    start: Moment
    end: Moment
    cap: Annotated[int, Field(description="More fires than this are refused.")] = 100
    max_cost: MaxCost = None
    expected_revision: Annotated[
        int | None, Field(description="Refused if the schedule is at another: as its preview showed it.")
    ] = None


class BackfillPreview(Shape):
    count: Annotated[int, Field(description="How many fires lie in the span.")]
    cap: int
    fits: Annotated[bool, Field(description="Whether a backfill with this cap and this max_cost would be taken.")]
    slots: Annotated[list[Moment], Field(description="Exactly what would run: the oldest, at most `cap`.")]
    revision: Annotated[int | None, Field(description="Of the schedule as it was looked at.")]
    cost: Annotated[Cost | None, Field(description="Of these slots.")]


class BackfilledRun(Shape):
    id: str
    scheduled_for: Moment
    status: RunStatus


class Backfilled(Shape):
    count: int
    runs: list[BackfilledRun]


def fire_shape(fire: DomainFire) -> Fire:
    return Fire(slot=moment_of(fire.slot), fire_at=moment_of(fire.fire_at))


def preview_shape(cadence: Cadence, count: int, *, now: datetime) -> PreviewedCadence:
    zone = ZoneInfo(_zone_of(cadence))
    fires = list(islice(cadence.after(now), count))
    return PreviewedCadence(
        words=cadence.explain(),
        fires=[PreviewedFire(at=fire, local=fire.astimezone(zone).isoformat()) for fire in fires],
        clock_changes=[
            ClockChange(at=note.at, kind=note.kind, text=note.text) for note in cadence.dst_notes(now, now + NOTED)
        ],
    )


def _zone_of(cadence: Cadence) -> str:
    inner = cadence.cadence if isinstance(cadence, Bounded) else cadence
    return inner.tz if isinstance(inner, Cron) else "UTC"


def backfill_preview_shape(backfill: Backfill, max_cost: Amount | None = None) -> BackfillPreview:
    cost = backfill.cost
    return BackfillPreview(
        count=backfill.count,
        cap=backfill.cap,
        fits=0 < backfill.count <= backfill.cap and (cost is None or cost.fits(max_cost)),
        slots=[moment_of(instant) for instant in backfill.instants],
        revision=backfill.revision,
        cost=None if cost is None else cost_shape(cost),
    )


def backfilled_shape(runs: list[Run]) -> Backfilled:
    return Backfilled(
        count=len(runs),
        runs=[BackfilledRun(id=run.id, scheduled_for=moment_of(run.scheduled_for), status=run.status) for run in runs],
    )
