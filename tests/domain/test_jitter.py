"""Jitter is the same everywhere, stays in its slot's neighbourhood, and keeps slots in order."""

import time
from datetime import UTC, datetime
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import cron, every, once
from duly.domain.cadence import Cadence
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.jitter import fire_at

NEVER = Instant(0)
SLOT = 1_800_000_000


def jittered(cadence: Cadence, slot: int, *, jitter_ms: int, name: str = "s", not_before: Instant = NEVER) -> Instant:
    return fire_at(ScheduleId(name), cadence, slot, jitter_ms=jitter_ms, not_before=not_before)


def test_without_jitter_a_slot_fires_when_it_is_due() -> None:
    assert jittered(every("1m"), SLOT, jitter_ms=0) == SLOT * SECOND


@pytest.mark.req("CRON-05")
def test_the_offset_is_a_fact_of_schedule_and_slot() -> None:
    first = jittered(every("1h"), SLOT, jitter_ms=60_000)

    assert jittered(every("1h"), SLOT, jitter_ms=60_000) == first
    assert jittered(every("1h"), SLOT, jitter_ms=60_000, name="other") != first


@pytest.mark.req("CRON-05")
def test_offsets_are_spread_on_both_sides() -> None:
    hour = every("1h")
    offsets = [jittered(hour, SLOT + 3600 * n, jitter_ms=60_000) - (SLOT + 3600 * n) * SECOND for n in range(400)]

    assert all(-60 * SECOND <= offset <= 60 * SECOND for offset in offsets)
    assert 120 < sum(offset < 0 for offset in offsets) < 280
    assert len(set(offsets)) > 390


@given(
    cadence=st.sampled_from([every("1s"), every("90s"), cron("*/5 * * * *"), cron("0 9,10,17 * * MON-FRI")]),
    start=st.integers(1_700_000_000, 1_900_000_000),
    jitter_ms=st.integers(1, 86_400_000),
)
def test_slots_never_change_places(cadence: Cadence, start: int, jitter_ms: int) -> None:
    slots = []
    for slot in cadence.seconds_after(start):
        slots.append(slot)
        if len(slots) == 6:
            break

    fires = [jittered(cadence, slot, jitter_ms=jitter_ms) for slot in slots]

    assert all(earlier < later for earlier, later in pairwise(fires))


@pytest.mark.req("CRON-05")
@given(
    cadence=st.sampled_from([every("90s"), cron("*/5 * * * *"), cron("0 9,10,17 * * MON-FRI", "Europe/Berlin")]),
    start=st.integers(1_700_000_000, 1_900_000_000),
)
def test_a_slot_stays_within_half_the_way_to_its_nearer_neighbour(cadence: Cadence, start: int) -> None:
    before, slot, later = islice(cadence.seconds_after(start), 3)

    offset = jittered(cadence, slot, jitter_ms=86_400_000) - slot * SECOND

    assert 2 * abs(offset) < min(slot - before, later - slot, 2 * 86_400) * SECOND


def test_a_slot_without_neighbours_has_all_of_its_jitter() -> None:
    single = once(datetime.fromtimestamp(SLOT, UTC))
    offsets = {jittered(single, SLOT, jitter_ms=86_400_000, name=str(n)) - SLOT * SECOND for n in range(100)}

    assert max(map(abs, offsets)) > 43_200 * SECOND


@pytest.mark.parametrize("expr", ["* * * * * *", "* * * * *", "@yearly", "0 0 29 2 *"])
def test_neighbours_are_found_without_stepping(expr: str) -> None:
    cadence = cron(expr, "Europe/Berlin")
    slots = list(islice(cadence.seconds_after(SLOT), 20))

    began = time.process_time()
    for slot in slots:
        jittered(cadence, slot, jitter_ms=86_400_000)

    assert time.process_time() - began < 0.1


@pytest.mark.req("CRON-05")
def test_nothing_fires_before_the_schedule_began() -> None:
    for n in range(50):
        slot = SLOT + 3600 * n
        born = Instant(slot * SECOND - 5)

        assert jittered(every("1h"), slot, jitter_ms=600_000, not_before=born) >= born
