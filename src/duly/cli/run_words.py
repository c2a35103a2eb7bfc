"""What lists say of runs."""

from duly.cli.listing import Listing
from duly.cli.output import shortened
from duly.cli.shapes import at, run_shape
from duly.domain.runs import Run, RunStatus

_LONGEST_WHY = 80


def runs_listing(*, empty: str) -> Listing[Run]:
    return Listing(
        heads=("id", "schedule", "slot", "kind", "status", "started", "ended", "why"),
        row=_row,
        shape=run_shape,
        key=lambda run: run.id,
        empty=empty,
    )


def _row(run: Run) -> tuple[object, ...]:
    times = (at(run.started_at), at(run.completed_at))
    return (run.id, run.schedule_id, at(run.scheduled_for), run.kind.value, run.status.value, *times, _why(run))


def _why(run: Run) -> str | None:
    """The reason; of a run that failed also what it said, in one line of bounded width."""
    said = (run.error_message or "").strip().splitlines() if run.status is RunStatus.ERROR else []
    told = [] if run.reason is None else [run.reason.value]
    return ": ".join([*told, *(shortened(line, longest=_LONGEST_WHY) for line in said[:1])]) or None
