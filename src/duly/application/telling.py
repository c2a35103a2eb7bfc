"""Who is told of facts: nobody, or several at once."""

from collections.abc import Sequence

from duly.domain.decisions import Decision
from duly.domain.ids import SessionId
from duly.domain.sessions import ClaimedJob, Report, Rescue
from duly.ports.telemetry import Telemetry


class Nobody:
    """Listens to nothing; whoever wants to hear only some facts overrides the others' silence."""

    __slots__ = ()

    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:
        pass

    def failed(self, what: str, error: Exception) -> None:
        pass

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        pass

    def session_lost(self, session: SessionId, *, running: int) -> None:
        pass

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        pass


class Everybody:
    """Tells each listener in turn."""

    __slots__ = ("_listeners",)

    def __init__(self, *listeners: Telemetry) -> None:
        self._listeners = listeners

    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:
        for listener in self._listeners:
            listener.decided(decisions, due=due)

    def failed(self, what: str, error: Exception) -> None:
        for listener in self._listeners:
            listener.failed(what, error)

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        for listener in self._listeners:
            listener.exchanged(started, ended)

    def session_lost(self, session: SessionId, *, running: int) -> None:
        for listener in self._listeners:
            listener.session_lost(session, running=running)

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        for listener in self._listeners:
            listener.rescued(rescues)


NOBODY = Nobody()
