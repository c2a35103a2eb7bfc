"""How slowly a simulated machine lives: weeks pass as fast as minutes if its processes do everything more rarely."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

from duly.application.pace import Pace
from duly.domain import openings
from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.instants import SECOND, Micros
from duly.domain.sessions import LEASE
from duly.timekeeper import heart as timekeeper_heart
from duly.timekeeper import timekeeper
from duly.worker import heart as worker_heart
from duly.worker import worker

# Everything that processes do by themselves, however little there is to do.
_RESTS = {
    timekeeper: ("BEAT", "_SHORTEST_BACKOFF", "_LONGEST_BACKOFF", "_LOOK_AGAIN", "_LONGEST_WAIT"),
    timekeeper_heart: ("BEAT", "_RETRY_AFTER"),
    worker: ("_LONGEST_REST", "_RETRY_AFTER"),
    worker_heart: ("_RETRY_AFTER", "_SHORTEST_SLEEP"),
}


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A second of a process's own time takes `scale` seconds; 1 is as in production. `most_at_once` is for openings."""

    scale: int
    most_at_once: int = openings.MOST_AT_ONCE
    most_caught_up: int = 100

    def micros(self, seconds: float) -> Micros:
        return Micros(int(seconds * self.scale * SECOND))

    def millis(self, seconds: float) -> int:
        return int(seconds * self.scale * 1_000)

    @property
    def beat(self) -> Micros:
        return self.micros(5)

    @property
    def lease(self) -> Micros:
        return Micros(LEASE * self.scale)

    @property
    def pace(self) -> Pace:
        return Pace(
            tick=self.micros(1),
            lookahead=self.micros(60),
            most_caught_up=self.most_caught_up,
            outage_after=Micros(OUTAGE_AFTER * self.scale),
            stop_within=self.micros(30),
        )

    @contextmanager
    def kept(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(openings, "MOST_AT_ONCE", self.most_at_once))
            for module, names in _RESTS.items():
                for name in names:
                    slowed = Micros(getattr(module, name) * self.scale)
                    stack.enter_context(mock.patch.object(module, name, slowed))
            yield
