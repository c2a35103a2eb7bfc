"""What coverage proves: when nobody kept time, and until when somebody did."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from duly.domain.coverage import OUTAGE_AFTER, Outage, Span, outages_between
from duly.domain.instants import SECOND, Instant, Micros

GRACE = Micros(60 * SECOND)
"""How late a slot may be opened by a timekeeper that is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timekeeping:
    """`alive_at` is the last sign of life. What fired before `settled_before` was due for longer than the grace while a
    timekeeper was alive.
    """

    outages: Sequence[Outage]
    alive_at: Instant | None
    settled_before: Instant | None

    @classmethod
    def from_spans(
        cls, spans: Sequence[Span], *, now: Instant, grace: Micros = GRACE, outage_after: Micros = OUTAGE_AFTER
    ) -> "Timekeeping":
        """The spans of coverage, in order. They may reach beyond now, if the clock was set back."""
        settled = [min(span.end, now) - grace for span in spans if span.end - span.start > grace]
        return cls(
            outages=outages_between(_as_first_recorded(spans), outage_after=outage_after),
            alive_at=Instant(min(max(span.end for span in spans), now)) if spans else None,
            settled_before=Instant(max(settled)) if settled else None,
        )

    def is_settled(self, fires_at: Instant) -> bool:
        return self.settled_before is not None and fires_at < self.settled_before

    def outage_at(self, instant: Instant) -> Outage | None:
        """The outage that an instant lies in; they are in order and apart."""
        at = bisect_left(self.outages, instant, key=lambda outage: outage.end)
        while at < len(self.outages) and self.outages[at].start < instant:
            if self.outages[at].holds(instant):
                return self.outages[at]
            at += 1
        return None


def _as_first_recorded(spans: Sequence[Span]) -> list[Span]:
    """A span that runs into a later one begins where that one began.

    Its clock was set back, into what stood as an outage until then, and what had been missed there stays missed.
    """
    starts = [span.start for span in spans]
    began = list(starts)
    for number in reversed(range(len(spans))):
        began[number] = began[bisect_right(starts, spans[number].end) - 1]
    kept = [Span(start, max(start, span.end)) for start, span in zip(began, spans, strict=True)]
    return sorted(kept, key=lambda span: span.start)
