"""Where facts go, for whoever counts, logs or raises an alarm. Telling must be quick and must not raise."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.decisions import Decision


class Telemetry(Protocol):
    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:
        """What was decided about slots, once it is committed; `due` schedules were judged for it."""

    def failed(self, what: str, error: Exception) -> None:
        """Something that is tried again did not work."""
