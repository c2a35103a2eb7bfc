"""Facts about slots: what was decided, when and why, for whoever logs, counts or raises an alarm."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.ids import RunId, ScheduleId
from duly.domain.instants import Instant, Micros
from duly.domain.runs import GapReason, Reason

IN_TIME = Micros(0)


class Fate(StrEnum):
    OPENED = "opened"  # a run was put
    CAUGHT_UP = "caught_up"  # a run was put for a slot that had been missed
    SKIPPED = "skipped"  # closed without a run
    REPLACED = "replaced"  # closed, because a later slot took its place
    FAILED = "failed"  # its job could not be put
    MISSED = "missed"  # in a gap
    OWED = "owed"  # missed, to be caught up
    STOPPED = "stopped"  # a run in flight was withdrawn or asked to stop
    BROKEN = "broken"  # the schedule could not be evaluated


@dataclass(slots=True, kw_only=True)
class Decision:
    """What became of a slot, or of `count` slots from `slot` through `last`. `late` is how long after its time.

    Of several slots it is that of the first.

    Not frozen: one is made for every slot, and that would take four times as long.
    """

    schedule_id: ScheduleId
    at: Instant
    fate: Fate
    slot: Instant | None = None
    last: Instant | None = None
    count: int = 1
    run_id: RunId | None = None
    reason: Reason | GapReason | None = None
    detail: str | None = None
    late: Micros = IN_TIME
