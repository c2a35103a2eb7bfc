"""A cron expression that was once accepted and can no longer be read."""

from dataclasses import dataclass

from duly.domain.cadence.cadence import Cadence
from duly.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class UnreadableCron(Cadence):
    """Kept as it was stored, say after its zone has left the tz database: whoever asks it for a fire is told why."""

    expr: str
    tz: str
    reason: str

    def next_second(self, after: int) -> int | None:  # noqa: ARG002 - it has no fires at all
        raise self._refusal()

    def last_second(self, through: int) -> int | None:  # noqa: ARG002
        raise self._refusal()

    def count(self, after: int, through: int) -> int:  # noqa: ARG002
        raise self._refusal()

    def explain(self) -> str:
        return f"Unreadable: {self.expr}, {self.tz}"

    def _refusal(self) -> InvalidInput:
        return InvalidInput("cadence", f"can no longer be read: {self.reason}", fix="give the schedule another one")
