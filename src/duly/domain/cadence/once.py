"""A single instant."""

from dataclasses import dataclass
from datetime import datetime

from duly.domain.cadence.cadence import Cadence
from duly.domain.cadence.instants import utc_of, whole_second_of


@dataclass(frozen=True, slots=True, repr=False)
class Once(Cadence):
    """Fires at one UTC second; build it with `once()`."""

    second: int

    @property
    def at(self) -> datetime:
        return utc_of(self.second)

    def next_second(self, after: int) -> int | None:
        return self.second if self.second > after else None

    def last_second(self, through: int) -> int | None:
        return self.second if self.second <= through else None

    def count(self, after: int, through: int) -> int:
        return int(after < self.second <= through)

    def explain(self) -> str:
        return f"Once, at {self.at:%Y-%m-%d %H:%M:%S} UTC"

    def __repr__(self) -> str:
        return f"once(datetime.fromisoformat({self.at.isoformat()!r}))"


def once(at: datetime) -> Once:
    """A cadence that fires once, at an aware datetime of whole seconds.

    A wall time that a clock change skips or repeats is read as Python reads it (`fold`); a time of day that
    must survive clock changes is a cron expression's business.
    """
    return Once(whole_second_of("at", at))
