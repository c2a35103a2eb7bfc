"""Positions: integers with gaps, and room made where there is none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.positions import GAP, at_the_end, between, spread

NUMBERS = st.integers(-(10**15), 10**16)


@pytest.mark.req("DEC-005")
@given(NUMBERS, st.integers(0, 10**9))
def test_a_position_between_two_is_strictly_between_them(lower: int, distance: int) -> None:
    position = between(lower, lower + distance)

    if distance < 2:
        assert position is None
    else:
        assert position is not None
        assert lower < position < lower + distance


@pytest.mark.req("DEC-005")
@given(NUMBERS)
def test_there_is_always_room_at_the_front(upper: int) -> None:
    position = between(None, upper)

    assert position == upper - GAP


@pytest.mark.req("DEC-005")
@given(NUMBERS, NUMBERS)
def test_the_end_is_behind_the_last_and_before_those_to_come(last: int, now: int) -> None:
    position = at_the_end(last, now)

    assert position > last
    assert position <= max(last, now) + 1


@pytest.mark.req("DEC-005")
@given(st.integers(1, 500), NUMBERS, st.integers(0, 2_000))
def test_a_spread_rises_strictly_between_its_bounds(count: int, lower: int, distance: int) -> None:
    places = spread(count, lower=lower, upper=lower + distance)

    if places is None:
        assert distance < 2 * (count + 1)
    else:
        assert len(places) == count
        assert _rising([lower, *places, lower + distance])


@given(st.integers(1, 500), NUMBERS)
def test_a_spread_with_an_open_front_always_fits(count: int, upper: int) -> None:
    places = spread(count, lower=None, upper=upper)

    assert places is not None
    assert _rising([*places, upper])


@pytest.mark.req("DEC-005", error=True)
def test_more_jobs_than_numbers_do_not_fit() -> None:
    assert spread(3, lower=0, upper=3) is None
    assert spread(3, lower=0, upper=4) == [1, 2, 3]


def _rising(positions: list[int]) -> bool:
    return all(earlier < later for earlier, later in pairwise(positions))
