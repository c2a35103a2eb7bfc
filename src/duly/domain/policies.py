"""What becomes of a slot when a run of its schedule is still in flight, or when nobody was there to open it."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.errors import InvalidInput
from duly.domain.texts import whole_number_of

LONGEST_JITTER_MS = 86_400_000


class Overlap(StrEnum):
    ALLOW = "allow"  # runs beside the others
    SKIP = "skip"  # closes the new slot
    QUEUE = "queue"  # waits for the others, in order
    QUEUE_ONE = "queue_one"  # waits, unless one waits already
    REPLACE = "replace"  # takes the place of the others


class CatchUp(StrEnum):
    NONE = "none"  # missed slots are counted and left
    FIRE_IMMEDIATELY = "fire_immediately"  # oldest first, as fast as the cap allows
    SPREAD = "spread"  # evenly over the lookahead


# With these, one run stands for all missed slots: the newest.
ONE_FOR_ALL = frozenset({Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.REPLACE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """`catch_up_cap` bounds how many missed slots of one outage are caught up; the rest are recorded as a gap."""

    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.NONE
    catch_up_cap: int = 1_000
    jitter_ms: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "overlap", _choice(Overlap, self.overlap, field="overlap"))
        object.__setattr__(self, "catch_up", _choice(CatchUp, self.catch_up, field="catch_up"))
        whole_number_of(self.catch_up_cap, field="catch_up_cap", least=1, most=100_000)
        whole_number_of(self.jitter_ms, field="jitter_ms", least=0, most=LONGEST_JITTER_MS)


def _choice(kind: type[StrEnum], value: object, *, field: str) -> StrEnum:
    try:
        return kind(str(value))
    except ValueError:
        raise InvalidInput(field, f"{str(value)[:40]!r} is not a policy", fix=f"use one of {', '.join(kind)}") from None
