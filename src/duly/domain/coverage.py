"""Coverage: the spans in which a timekeeper was alive, and which slots fell between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.domain.instants import SECOND, Instant, Micros

OUTAGE_AFTER = Micros(60 * SECOND)


@dataclass(frozen=True, slots=True)
class Span:
    """A timekeeper was alive from `start` through `end`, both included."""

    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Outage:
    """Nobody kept time after `start` and before `end`, for longer than an outage may be short."""

    start: Instant
    end: Instant

    def holds(self, instant: int) -> bool:
        return self.start < instant < self.end


def outages_between(spans: Sequence[Span], *, outage_after: Micros = OUTAGE_AFTER) -> list[Outage]:
    """The outages between spans in order. A shorter silence is lateness: whatever was due in it still fires."""
    outages: list[Outage] = []
    alive_through: Instant | None = None
    for span in spans:
        if alive_through is not None and span.start - alive_through > outage_after:
            outages.append(Outage(alive_through, span.start))
        alive_through = span.end if alive_through is None else max(alive_through, span.end)
    return outages


def extended(last: Span | None, now: Instant, *, outage_after: Micros = OUTAGE_AFTER) -> tuple[Span, bool]:
    """The span after a heartbeat at `now`, and whether it is a new one.

    A clock that was set forward looks like an outage, because nobody was there in the time it skipped. One that was
    set back uncovers nothing. If it was set back to before the span began, into what may stand as an outage, the span
    begins earlier: whoever is alive then misses nothing.
    """
    if last is None or now - last.end > outage_after:
        return Span(now, now), True
    return Span(min(last.start, now), max(last.end, now)), False
