"""The decision table: every kind of slot under every policy, and what must hold whatever the policies."""

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import every
from duly.domain.coverage import Outage
from duly.domain.ids import RunId
from duly.domain.instants import SECOND, Instant
from duly.domain.openings import MOST_AT_ONCE, InFlight, Plan, plan
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import GapReason, Reason
from duly.domain.schedules import Schedule, Target, new_schedule

BORN = Instant(1_800_000_000 * SECOND)
SECOND_0 = BORN // SECOND


def minutely(**policies: object) -> Schedule:
    return new_schedule(
        schedule_id="s",
        owner="me",
        cadence=every("1m"),
        target=Target(kind="work"),
        policies=Policies(**policies),  # type: ignore[arg-type]
        now=BORN,
    )


def run_ids() -> Iterator[RunId]:
    return (RunId(f"run {n}") for n in count(1))


def after(minutes: float) -> Instant:
    return Instant(BORN + int(minutes * 60 * SECOND))


def decided(
    schedule: Schedule, *, minutes: float, outages: tuple[Outage, ...] = (), in_flight: InFlight | None = None
) -> Plan:
    return plan(schedule, now=after(minutes), outages=outages, in_flight=in_flight or InFlight(), run_ids=run_ids())


def fates(result: Plan) -> list[str]:
    return [opening.reason or "runs" for opening in result.openings]


# Slots that are on time or late


@pytest.mark.req("CRON-03")
@pytest.mark.req("GRAPH-14")
@pytest.mark.parametrize(
    ("overlap", "running", "waiting", "fate"),
    [
        (Overlap.ALLOW, [], [], "runs"),
        (Overlap.ALLOW, ["r"], ["w"], "runs"),
        (Overlap.SKIP, [], [], "runs"),
        (Overlap.SKIP, ["r"], [], Reason.OVERLAP),
        (Overlap.SKIP, [], ["w"], Reason.OVERLAP),
        (Overlap.QUEUE, ["r"], ["w"], "runs"),
        (Overlap.QUEUE_ONE, ["r"], [], "runs"),
        (Overlap.QUEUE_ONE, [], ["w"], Reason.COALESCED),
        (Overlap.QUEUE_ONE, ["r"], ["w"], Reason.COALESCED),
        (Overlap.REPLACE, ["r"], ["w"], "runs"),
    ],
)
def test_a_slot_meets_what_is_in_flight(overlap: Overlap, running: list[str], waiting: list[str], fate: str) -> None:
    result = decided(minutely(overlap=overlap), minutes=1, in_flight=InFlight(running, waiting))

    assert fates(result) == [fate]


def test_a_skipped_slot_names_the_run_in_its_way() -> None:
    result = decided(minutely(overlap="skip"), minutes=1, in_flight=InFlight(["run 7"]))

    assert result.openings[0].detail == "run 7 was still in flight"


def test_replacing_withdraws_what_waits_and_stops_what_runs() -> None:
    result = decided(minutely(overlap="replace"), minutes=1, in_flight=InFlight(["r"], ["w1", "w2"]))

    assert result.withdraw == ["w1", "w2"]
    assert result.stop == ["r"]


def test_late_slots_are_decided_one_after_another() -> None:
    assert fates(decided(minutely(overlap="skip"), minutes=3)) == ["runs", Reason.OVERLAP, Reason.OVERLAP]
    assert fates(decided(minutely(overlap="queue"), minutes=3)) == ["runs", "runs", "runs"]
    assert fates(decided(minutely(overlap="queue_one"), minutes=3)) == ["runs", Reason.COALESCED, Reason.COALESCED]
    assert fates(decided(minutely(overlap="replace"), minutes=3)) == [Reason.REPLACED, Reason.REPLACED, "runs"]


def test_a_slot_that_is_merely_late_always_fires() -> None:
    """However late: what was not inside an outage is not missed."""
    result = decided(minutely(overlap="queue"), minutes=50)

    assert fates(result) == ["runs"] * 50
    assert not result.gaps


# Missed slots

OUTAGE = (Outage(after(0.5), after(5.5)),)


@pytest.mark.req("GRAPH-10")
@pytest.mark.req("CRON-04")
def test_without_catch_up_missed_slots_are_one_gap() -> None:
    result = decided(minutely(overlap="queue"), minutes=7, outages=OUTAGE)

    (gap,) = result.gaps
    assert (gap.first, gap.last, gap.count) == (SECOND_0 + 60, SECOND_0 + 300, 5)
    assert gap.reason is GapReason.OUTAGE
    assert [opening.slot for opening in result.openings] == [SECOND_0 + 360, SECOND_0 + 420]


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("catch_up", [CatchUp.FIRE_IMMEDIATELY, CatchUp.SPREAD])
@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.QUEUE])
def test_what_is_to_be_caught_up_does_not_hold_up_live_slots(overlap: Overlap, catch_up: CatchUp) -> None:
    result = decided(minutely(overlap=overlap, catch_up=catch_up), minutes=6, outages=OUTAGE)

    (arrears,) = result.arrears
    assert (arrears.first, arrears.last, arrears.count) == (SECOND_0 + 60, SECOND_0 + 300, 5)
    assert [opening.slot for opening in result.openings] == [SECOND_0 + 360]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.REPLACE])
def test_where_runs_exclude_each_other_the_newest_stands_for_all_missed(overlap: Overlap) -> None:
    schedule = minutely(overlap=overlap, catch_up="fire_immediately")

    result = decided(schedule, minutes=5, outages=OUTAGE)

    (gap,) = result.gaps
    assert (gap.count, gap.reason) == (4, GapReason.SUPERSEDED)
    assert [opening.slot for opening in result.openings] == [SECOND_0 + 300]
    assert fates(result) == ["runs"]


def test_the_borders_of_an_outage_are_not_inside_it() -> None:
    result = decided(minutely(overlap="queue"), minutes=3, outages=(Outage(after(1), after(3)),))

    assert [opening.slot for opening in result.openings] == [SECOND_0 + 60, SECOND_0 + 180]
    assert [gap.count for gap in result.gaps] == [1]


def test_two_outages_make_two_gaps() -> None:
    result = decided(
        minutely(overlap="queue"), minutes=6, outages=(Outage(after(0.5), after(2.5)), Outage(after(3.5), after(5.5)))
    )

    assert [gap.count for gap in result.gaps] == [2, 2]
    assert [opening.slot for opening in result.openings] == [SECOND_0 + 180, SECOND_0 + 360]


def test_a_month_of_outage_costs_one_gap_and_no_list() -> None:
    month = 30 * 24 * 60
    result = decided(minutely(), minutes=month + 1, outages=(Outage(after(0.5), after(month + 0.5)),))

    assert [gap.count for gap in result.gaps] == [month]
    assert len(result.openings) == 1


def test_a_crowd_of_late_slots_is_taken_in_parts() -> None:
    schedule = minutely(overlap="queue")

    first = decided(schedule, minutes=MOST_AT_ONCE + 20)

    assert len(first.openings) == MOST_AT_ONCE
    assert first.opened_through == SECOND_0 + 60 * MOST_AT_ONCE


def test_nothing_that_was_opened_opens_again_when_the_clock_is_set_back() -> None:
    schedule = minutely().changed(at=after(10))

    assert decided(schedule, minutes=5).openings == []


@given(
    overlap=st.sampled_from(Overlap),
    catch_up=st.sampled_from(CatchUp),
    minutes=st.integers(0, 90),
    cuts=st.lists(st.integers(0, 90), min_size=2, max_size=6, unique=True),
    running=st.booleans(),
    waiting=st.booleans(),
)
def test_every_due_slot_has_exactly_one_fate(
    *, overlap: Overlap, catch_up: CatchUp, minutes: int, cuts: list[int], running: bool, waiting: bool
) -> None:
    schedule = minutely(overlap=overlap, catch_up=catch_up)
    borders = sorted(cuts)
    outages = tuple(
        Outage(after(start + 0.5), after(end + 0.5)) for start, end in zip(borders[::2], borders[1::2], strict=False)
    )
    in_flight = InFlight(["r"] * running, ["w"] * waiting)

    result = decided(schedule, minutes=minutes, outages=outages, in_flight=in_flight)

    due = set(range(SECOND_0 + 60, SECOND_0 + 60 * minutes + 1, 60))
    opened = [opening.slot for opening in result.openings]
    spans = [(gap.first, gap.last, gap.count) for gap in result.gaps]
    spans += [(arrears.first, arrears.last, arrears.count) for arrears in result.arrears]
    missed = [slot for first, last, _ in spans for slot in due if first <= slot <= last]
    assert sorted(opened + missed) == sorted(due)
    assert all(count == len([slot for slot in due if first <= slot <= last]) for first, last, count in spans)
    assert opened == sorted(opened)
    assert result.opened_through == max(due, default=SECOND_0)
