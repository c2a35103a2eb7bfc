"""Positions of new jobs: never twice, never backwards, whatever the clock does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.application.places import Places
from duly.domain.instants import Instant


@pytest.mark.req("INV-004")
@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(1, 5))))
def test_positions_always_rise_and_never_overlap(steps: list[tuple[int, int]]) -> None:
    places = Places()
    last = 0

    for now, count in steps:
        first = places.take(Instant(now), count)
        assert first > last
        assert first >= now
        last = first + count - 1


def test_a_position_is_the_time_where_the_time_goes_on() -> None:
    places = Places()

    assert [places.take(Instant(now)) for now in (100, 200, 300)] == [100, 200, 300]


def test_a_clock_that_stands_still_or_goes_back_still_gives_new_places() -> None:
    places = Places()

    assert [places.take(Instant(now)) for now in (100, 100, 50)] == [100, 101, 102]
