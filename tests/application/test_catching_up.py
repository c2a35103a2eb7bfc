"""How missed slots are owed and taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import InvalidInput, every
from duly.application.catching_up import forgiven, owed_for, take
from duly.application.pace import Pace
from duly.domain.cadence import Cadence
from duly.domain.instants import SECOND, Instant, Micros, moment_of
from duly.domain.openings import ToCatchUp
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import Arrears, GapReason
from duly.domain.schedules import Schedule, Target, new_schedule

BORN = Instant(1_800_000_000 * SECOND)
FIRST = 1_800_000_060
NOW = Instant(BORN + 86_400 * SECOND)
PACE = Pace(lookahead=Micros(60 * SECOND), tick=SECOND)


def minutely(*, spread: bool = False, cap: int = 1_000) -> Schedule:
    catch_up = CatchUp.SPREAD if spread else CatchUp.FIRE_IMMEDIATELY
    return new_schedule(
        schedule_id="s",
        owner="ann",
        cadence=every("1m"),
        target=Target(kind="work"),
        policies=Policies(overlap=Overlap.ALLOW, catch_up=catch_up, catch_up_cap=cap),
        now=BORN,
    )


def missed(count: int) -> ToCatchUp:
    return ToCatchUp(FIRST, FIRST + 60 * (count - 1), count)


def owed(count: int, *, spread: bool = False) -> Arrears:
    arrears, _ = owed_for(minutely(spread=spread), missed(count), now=NOW, pace=PACE)
    return arrears


@pytest.mark.req("CRON-04")
def test_what_is_spread_is_spread_evenly_over_the_lookahead() -> None:
    assert owed(6, spread=True).every == 10 * SECOND
    assert owed(6).every == 0
    assert owed(6).due_at == NOW


@pytest.mark.req("CRON-04", error=True)
@pytest.mark.parametrize(("count", "cap"), [(1, 1), (5, 5), (6, 5), (1_000, 1)])
def test_only_the_oldest_up_to_the_cap_are_owed_and_the_others_are_a_gap(count: int, cap: int) -> None:
    arrears, rest = owed_for(minutely(cap=cap), missed(count), now=NOW, pace=PACE)

    kept = min(count, cap)
    assert (arrears.count, arrears.last) == (kept, (FIRST + 60 * (kept - 1)) * SECOND)
    if count <= cap:
        assert rest is None
    else:
        assert rest is not None
        assert (rest.first, rest.last, rest.count) == (FIRST + 60 * cap, FIRST + 60 * (count - 1), count - cap)
        assert rest.reason is GapReason.CATCH_UP_CAP


@pytest.mark.req("CRON-04")
def test_those_that_are_not_spread_come_a_ticks_worth_at_a_time() -> None:
    taken = take(owed(7), every("1m"), now=NOW, most=3, pace=PACE)

    assert taken.slots == [FIRST, FIRST + 60, FIRST + 120]
    assert (taken.left.next, taken.left.count) == ((FIRST + 180) * SECOND, 4)
    assert taken.left.due_at == NOW + PACE.tick


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize(("seconds", "due"), [(0, 1), (9.9, 1), (10, 2), (35, 4), (1_000, 6)])
def test_those_that_are_spread_come_when_it_is_their_turn(seconds: float, due: int) -> None:
    now = Instant(NOW + int(seconds * SECOND))

    taken = take(owed(6, spread=True), every("1m"), now=now, most=100, pace=PACE)

    assert len(taken.slots) == due
    assert taken.left.due_at == NOW + due * 10 * SECOND


@given(
    count=st.integers(1, 60),
    spread=st.booleans(),
    steps=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=40),
)
def test_each_is_taken_once_and_in_order_and_what_is_left_is_what_was_not(
    *, count: int, spread: bool, steps: list[tuple[int, int]]
) -> None:
    left, now = owed(count, spread=spread), NOW
    slots: list[int] = []
    for seconds, most in steps:
        now = Instant(now + seconds * SECOND)
        if left.count and left.due_at <= now:
            taken = take(left, every("1m"), now=now, most=most, pace=PACE)
            assert 1 <= len(taken.slots) <= most
            slots += taken.slots
            left = taken.left

    assert slots == [FIRST + 60 * n for n in range(len(slots))]
    assert left.count == count - len(slots)
    if left.count:
        assert left.next == (FIRST + 60 * len(slots)) * SECOND


def test_what_is_forgiven_is_a_gap_of_the_outage_and_nothing_is_owed() -> None:
    left = take(owed(7), every("1m"), now=NOW, most=3, pace=PACE).left

    gap, nothing = forgiven(left, now=NOW)

    assert (gap.first, gap.last, gap.count) == ((FIRST + 180) * SECOND, (FIRST + 360) * SECOND, 4)
    assert (gap.reason, gap.revision) == (GapReason.OUTAGE, 1)
    assert (nothing.first, nothing.count) == (left.first, 0)


@pytest.mark.req("CRON-04", error=True)
@pytest.mark.parametrize("cadence", [every("1h"), every("1m").within(end_at=moment_of(BORN))])
def test_a_cadence_that_has_other_fires_than_it_had_is_not_followed_beyond_what_is_owed(cadence: Cadence) -> None:
    with pytest.raises(InvalidInput, match="fewer fires"):
        take(owed(7), cadence, now=NOW, most=100, pace=PACE)
