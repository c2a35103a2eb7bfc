"""A slot as handlers meet it: the instant a run is for, which is not when it happens to run."""

from dataclasses import dataclass
from datetime import UTC, datetime

from duly.domain.errors import InvalidInput
from duly.domain.ids import ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """`key` is the run's: whatever a handler does under it, it does once for this slot."""

    at: datetime
    schedule_id: ScheduleId
    key: str

    def __post_init__(self) -> None:
        if self.at.tzinfo is None or self.at.utcoffset() is None:
            raise InvalidInput(
                "at", "is not a datetime with a zone", fix="pass an aware datetime, e.g. with tzinfo=UTC"
            )
        object.__setattr__(self, "at", self.at.astimezone(UTC))

    def __str__(self) -> str:
        return self.at.replace(tzinfo=None).isoformat() + "Z"
