"""An answer in one word for programs, and in sentences for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.domain.cadence.words import duration_in_words
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`slot` is a UTC second, if it was asked for one."""

    schedule_id: ScheduleId
    slot: int | None = None
    answer: str
    sentences: Sequence[str]


def shown(second: int) -> str:
    return written(Instant(second * SECOND))


def lasting(micros: int) -> str:
    """Coarser the longer it is: `12 ms`, `3.4 s`, `2 hours 5 minutes`."""
    if micros < SECOND:
        return f"{micros // 1_000} ms"
    if micros < 60 * SECOND:
        return f"{micros / SECOND:.1f} s"
    return duration_in_words(micros // SECOND)


def slots_in_words(count: int, first: Instant, last: Instant) -> str:
    return f"1 slot, {written(first)}" if count == 1 else f"{count} slots from {written(first)} through {written(last)}"


def why(reason: str | None, detail: str | None) -> str:
    """` (overlap): run_1 was still in flight`, as far as there is any."""
    return (f" ({reason})" if reason else "") + (f": {first_line(detail)}" if detail else "")


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
