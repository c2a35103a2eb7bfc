"""How fast time is followed, and how fast it is caught up with."""

from dataclasses import dataclass

from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.instants import SECOND, Micros

LOOKAHEAD = Micros(60 * SECOND)
STOP_WITHIN = Micros(30 * SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """At most `most_caught_up` missed slots are opened in a `tick`; what is spread is spread over `lookahead`.

    A silence longer than `outage_after` is an outage. A run that is asked to stop loses its claim after `stop_within`.
    """

    tick: Micros = SECOND
    lookahead: Micros = LOOKAHEAD
    most_caught_up: int = 100
    outage_after: Micros = OUTAGE_AFTER
    stop_within: Micros = STOP_WITHIN
