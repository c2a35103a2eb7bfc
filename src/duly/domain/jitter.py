"""Jitter: when within its slot's neighbourhood a schedule fires, the same on every machine and after every restart."""

import hashlib

from duly.domain.cadence import Cadence
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant


def fire_at(schedule_id: ScheduleId, cadence: Cadence, slot: int, *, jitter_ms: int, not_before: Instant) -> Instant:
    """The instant a slot, a UTC second, fires at: uniform within ±`jitter_ms` around it.

    Kept under half the smaller gap to a neighbouring slot, so that slots never change places, and never before the
    revision that plans it was made.
    """
    at = slot * SECOND
    if jitter_ms == 0:
        return Instant(at)
    widest = jitter_ms * 1000
    for neighbour in (cadence.last_second(slot - 1), cadence.next_second(slot)):
        if neighbour is not None:
            widest = min(widest, (abs(slot - neighbour) * SECOND - 1) // 2)
    return Instant(max(at + _offset(schedule_id, slot, widest), min(at, not_before)))


def _offset(schedule_id: ScheduleId, slot: int, widest: int) -> int:
    digest = hashlib.blake2b(f"{schedule_id}:{slot}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (2 * widest + 1) - widest
