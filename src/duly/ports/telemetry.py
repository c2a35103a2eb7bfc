"""Where facts go, for whoever counts, logs or raises an alarm. Telling must be quick and must not raise."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.decisions import Decision
from duly.domain.ids import SessionId
from duly.domain.sessions import ClaimedJob, Report, Rescue


class Telemetry(Protocol):
    """Told in the event loop of whoever tells, and once for many facts: a worker's exchange is one call."""

    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:
        """What was decided about slots, once it is committed; `due` schedules were judged for it."""

    def failed(self, what: str, error: Exception) -> None:
        """Something that is tried again did not work."""

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        """Jobs whose handlers are entered now, and runs whose ends are recorded, once it is committed."""

    def session_lost(self, session: SessionId, *, running: int) -> None:
        """A worker's lease ran out while it lived; the jobs it had `running` are void."""

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        """The claims of sessions that stopped beating were taken over."""
