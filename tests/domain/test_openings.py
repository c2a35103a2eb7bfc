"""The decision table: every kind of slot under every policy, and what must hold whatever the policies."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import every
from duly.domain import openings
from duly.domain.coverage import OUTAGE_AFTER, Outage, Span, extended, outages_between
from duly.domain.ids import RunId
from duly.domain.instants import SECOND, Instant
from duly.domain.openings import MOST_AT_ONCE, InFlight, Plan, plan
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import GapReason, Reason
from duly.domain.schedules import Schedule, Target, new_schedule

BORN = Instant(1_800_000_000 * SECOND)
SECOND_0 = BORN // SECOND


def minutely(**policies: object) -> Schedule:
    return paced("1m", **policies)


def secondly(**policies: object) -> Schedule:
    return paced("1s", **policies)


def paced(interval: str, **policies: object) -> Schedule:
    return new_schedule(
        schedule_id="s",
        owner="me",
        cadence=every(interval),
        target=Target(kind="work"),
        policies=Policies(**policies),  # type: ignore[arg-type]
        now=BORN,
    )


def run_ids() -> Iterator[RunId]:
    return (RunId(f"run {n}") for n in count(1))


def after(minutes: float) -> Instant:
    return Instant(BORN + int(minutes * 60 * SECOND))


def decided(
    schedule: Schedule,
    *,
    minutes: float = 0,
    now: Instant | None = None,
    outages: tuple[Outage, ...] = (),
    in_flight: InFlight | None = None,
) -> Plan:
    in_flight = InFlight() if in_flight is None else in_flight
    return plan(schedule, now=now or after(minutes), outages=outages, in_flight=in_flight, run_ids=run_ids())


def fates(result: Plan) -> list[str]:
    return [opening.reason or "runs" for opening in result.openings]


# The rows of the table, each by its name: slot, overlap, in flight, becomes


def rows_of_the_table() -> list[str]:
    """Slot, overlap and what is in flight, as they stand in a test's name."""
    table = [line for line in str(openings.__doc__).splitlines() if line.startswith("|")][2:]
    named, slot = [], ""
    for line in table:
        _, first, overlap, in_flight, *_ = (cell.strip() for cell in line.split("|"))
        slot = first or slot
        named.append("_".join(re.findall(r"\w+", f"{slot} {overlap} {in_flight}")))
    return named


def test_every_row_of_the_table_has_a_test_of_its_name() -> None:
    rows = rows_of_the_table()
    tests = [name for name in globals() if "_becomes_" in name]

    assert len(rows) == len(tests) == 10
    assert [row for row in rows if not any(name.startswith(f"test_{row}_becomes_") for name in tests)] == []


on_time_or_late = pytest.mark.parametrize("minutes", [1, 1.5, 1.99], ids=["on time", "late", "later"])
MISSED_FROM_1_THROUGH_5 = (Outage(after(0.5), after(5.5)),)


@pytest.mark.req("CRON-03")
@pytest.mark.req("GRAPH-14")
@on_time_or_late
@pytest.mark.parametrize(("running", "waiting"), [([], []), (["r"], []), ([], ["w"]), (["r"], ["w"])])
def test_on_time_or_late_allow_anything_becomes_a_run(minutes: float, running: list[str], waiting: list[str]) -> None:
    result = decided(minutely(overlap="allow"), minutes=minutes, in_flight=InFlight(running, waiting))

    assert fates(result) == ["runs"]
    assert (result.withdraw, result.stop) == ([], [])


@pytest.mark.req("CRON-03")
@pytest.mark.req("GRAPH-14")
@on_time_or_late
def test_on_time_or_late_skip_nothing_becomes_a_run(minutes: float) -> None:
    assert fates(decided(minutely(overlap="skip"), minutes=minutes)) == ["runs"]


@pytest.mark.req("CRON-03")
@pytest.mark.req("GRAPH-14")
@on_time_or_late
@pytest.mark.parametrize(
    ("in_flight", "named"),
    [
        (InFlight(["r"], []), "r was still running"),
        (InFlight([], ["w"]), "w was still waiting"),
        (InFlight([], ["w"], "pool 'p' (1 of 1 in use)"), "w was still waiting for pool 'p' (1 of 1 in use)"),
        (InFlight(["r", "q"], ["w"], "pool 'p' (1 of 1 in use)"), "r was still running"),
    ],
)
def test_on_time_or_late_skip_something_becomes_skipped_and_names_what_is_in_its_way(
    minutes: float, in_flight: InFlight, named: str
) -> None:
    result = decided(minutely(overlap="skip"), minutes=minutes, in_flight=in_flight)

    assert fates(result) == [Reason.OVERLAP]
    assert result.openings[0].detail == named
    assert (result.withdraw, result.stop) == ([], [])


@pytest.mark.req("CRON-03")
@on_time_or_late
@pytest.mark.parametrize(("running", "waiting"), [([], []), (["r"], []), ([], ["w"]), (["r"], ["w", "v"])])
def test_on_time_or_late_queue_anything_becomes_a_run(minutes: float, running: list[str], waiting: list[str]) -> None:
    in_flight = InFlight(running, [*waiting])

    result = decided(minutely(overlap="queue"), minutes=minutes, in_flight=in_flight)

    assert fates(result) == ["runs"]
    assert in_flight.waiting == [*waiting, "run 1"]
    assert (result.withdraw, result.stop) == ([], [])


@pytest.mark.req("CRON-03")
@on_time_or_late
@pytest.mark.parametrize("running", [[], ["r"]])
def test_on_time_or_late_queue_one_nothing_waits_becomes_a_run(minutes: float, running: list[str]) -> None:
    result = decided(minutely(overlap="queue_one"), minutes=minutes, in_flight=InFlight(running, []))

    assert fates(result) == ["runs"]
    assert (result.withdraw, result.stop) == ([], [])


@pytest.mark.req("CRON-03")
@on_time_or_late
@pytest.mark.parametrize("running", [[], ["r"]])
def test_on_time_or_late_queue_one_one_waits_becomes_skipped_and_names_it(minutes: float, running: list[str]) -> None:
    result = decided(minutely(overlap="queue_one"), minutes=minutes, in_flight=InFlight(running, ["w"]))

    assert fates(result) == [Reason.COALESCED]
    assert result.openings[0].detail == "coalesced into w, which was waiting"


@pytest.mark.req("GRAPH-14")
@on_time_or_late
@pytest.mark.parametrize(("running", "waiting"), [([], []), (["r"], []), ([], ["w"]), (["r", "q"], ["w", "v"])])
def test_on_time_or_late_replace_anything_becomes_a_run_instead_of_them(
    minutes: float, running: list[str], waiting: list[str]
) -> None:
    result = decided(minutely(overlap="replace"), minutes=minutes, in_flight=InFlight(running, [*waiting]))

    assert fates(result) == ["runs"]
    assert result.withdraw == waiting
    assert result.stop == running


@pytest.mark.req("GRAPH-10")
@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("overlap", Overlap)
def test_missed_any_catch_up_none_becomes_part_of_a_gap(overlap: Overlap) -> None:
    result = decided(minutely(overlap=overlap, catch_up="none"), minutes=5.5, outages=MISSED_FROM_1_THROUGH_5)

    (gap,) = result.gaps
    assert (gap.first, gap.last, gap.count) == (SECOND_0 + 60, SECOND_0 + 300, 5)
    assert gap.reason is GapReason.OUTAGE
    assert (result.openings, result.arrears) == ([], [])


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("catch_up", [CatchUp.FIRE_IMMEDIATELY, CatchUp.SPREAD])
@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.QUEUE])
def test_missed_allow_queue_catch_up_on_becomes_arrears(overlap: Overlap, catch_up: CatchUp) -> None:
    """All of them, the oldest first; the cap is kept when they are caught up."""
    schedule = minutely(overlap=overlap, catch_up=catch_up, catch_up_cap=2)

    result = decided(schedule, minutes=5.5, outages=MISSED_FROM_1_THROUGH_5)

    (arrears,) = result.arrears
    assert (arrears.first, arrears.last, arrears.count) == (SECOND_0 + 60, SECOND_0 + 300, 5)
    assert (result.openings, result.gaps) == ([], [])


@pytest.mark.req("CRON-04")
@pytest.mark.parametrize("catch_up", [CatchUp.FIRE_IMMEDIATELY, CatchUp.SPREAD])
@pytest.mark.parametrize(
    ("overlap", "running", "waiting", "fate"),
    [
        (Overlap.SKIP, [], [], "runs"),
        (Overlap.SKIP, ["r"], [], Reason.OVERLAP),
        (Overlap.QUEUE_ONE, ["r"], [], "runs"),
        (Overlap.QUEUE_ONE, ["r"], ["w"], Reason.COALESCED),
        (Overlap.REPLACE, ["r"], ["w"], "runs"),
    ],
)
def test_missed_skip_queue_one_replace_catch_up_on_becomes_a_gap_and_the_newest_as_if_late(
    overlap: Overlap, catch_up: CatchUp, running: list[str], waiting: list[str], fate: str
) -> None:
    schedule = minutely(overlap=overlap, catch_up=catch_up)

    result = decided(schedule, minutes=5.5, outages=MISSED_FROM_1_THROUGH_5, in_flight=InFlight(running, [*waiting]))

    (gap,) = result.gaps
    assert (gap.first, gap.last, gap.count) == (SECOND_0 + 60, SECOND_0 + 240, 4)
    assert gap.reason is GapReason.SUPERSEDED
    assert [opening.slot for opening in result.openings] == [SECOND_0 + 300]
    assert fates(result) == [fate]
    if overlap is Overlap.REPLACE:
        assert (result.withdraw, result.stop) == (waiting, running)


# Several late slots


@pytest.mark.req("CRON-03")
def test_late_slots_are_decided_one_after_another() -> None:
    assert fates(decided(minutely(overlap="skip"), minutes=3)) == ["runs", Reason.OVERLAP, Reason.OVERLAP]
    assert fates(decided(minutely(overlap="queue"), minutes=3)) == ["runs", "runs", "runs"]
    assert fates(decided(minutely(overlap="queue_one"), minutes=3)) == ["runs", Reason.COALESCED, Reason.COALESCED]
    assert fates(decided(minutely(overlap="replace"), minutes=3)) == [Reason.REPLACED, Reason.REPLACED, "runs"]


@pytest.mark.req("OWN-06")
def test_a_slot_that_is_merely_late_always_fires() -> None:
    """However late: what was not inside an outage is not missed."""
    result = decided(minutely(overlap="queue"), minutes=50)

    assert fates(result) == ["runs"] * 50
    assert not result.gaps


def after_a_silence(microseconds: int) -> tuple[tuple[Outage, ...], Instant]:
    """Heartbeats at birth and after the silence, as coverage keeps them: its outages, and now."""
    now = Instant(BORN + microseconds)
    span, is_new = extended(Span(BORN, BORN), now)
    spans = [Span(BORN, BORN), span] if is_new else [span]
    return tuple(outages_between(spans)), now


@pytest.mark.req("OWN-06")
@pytest.mark.req("CRON-03")
def test_the_late_slots_of_the_longest_silence_that_is_no_outage_each_have_a_row() -> None:
    outages, now = after_a_silence(OUTAGE_AFTER)

    result = decided(secondly(overlap="skip"), now=now, outages=outages)

    assert [opening.slot for opening in result.openings] == list(range(SECOND_0 + 1, SECOND_0 + 61))
    assert fates(result) == ["runs", *[Reason.OVERLAP] * 59]
    assert {opening.detail for opening in result.openings[1:]} == {"run 1 was still waiting"}
    assert not result.gaps


@pytest.mark.req("OWN-06")
def test_late_slots_all_run_where_runs_may_queue() -> None:
    outages, now = after_a_silence(OUTAGE_AFTER)

    assert fates(decided(secondly(overlap="queue"), now=now, outages=outages)) == ["runs"] * 60


@pytest.mark.req("OWN-06", error=True)
@pytest.mark.req("GRAPH-10")
def test_a_microsecond_more_of_silence_is_an_outage_and_its_slots_are_missed() -> None:
    outages, now = after_a_silence(OUTAGE_AFTER + 1)

    result = decided(secondly(overlap="skip"), now=now, outages=outages)

    assert [(gap.first, gap.last, gap.count) for gap in result.gaps] == [(SECOND_0 + 1, SECOND_0 + 60, 60)]
    assert result.openings == []


@pytest.mark.req("CRON-05")
def test_whether_a_jittered_slot_was_missed_depends_on_when_it_fires() -> None:
    schedule = minutely(overlap="queue", jitter_ms=20_000)
    fires = [schedule.fires_at(SECOND_0 + 60 * n) for n in range(1, 8)]

    # An outage that begins as the third slot fires and ends as the fifth does holds the fourth alone.
    result = decided(schedule, minutes=8, outages=(Outage(fires[2], fires[4]),))

    assert [gap.first for gap in result.gaps] == [gap.last for gap in result.gaps] == [SECOND_0 + 240]
    opened = [(opening.slot, opening.fire_at) for opening in result.openings[:6]]
    assert opened == [(SECOND_0 + 60 * n, fires[n - 1]) for n in (1, 2, 3, 5, 6, 7)]


# Several missed slots

OUTAGE = MISSED_FROM_1_THROUGH_5


@pytest.mark.req("GRAPH-10")
@pytest.mark.parametrize("policies", [{}, {"catch_up": "spread"}, {"overlap": "queue", "catch_up": "fire_immediately"}])
def test_after_an_outage_a_schedule_has_exactly_one_next_slot_and_it_lies_ahead(policies: dict[str, str]) -> None:
    schedule = minutely(**policies)

    result = decided(schedule, minutes=5.75, outages=OUTAGE)
    opened = replace(schedule, opened_through=result.opened_through).planned()

    assert opened.next_slot == SECOND_0 + 360
    assert decided(opened, minutes=5.75, outages=OUTAGE) == Plan(
        opened_through=result.opened_through, next_slot=opened.next_slot, fire_at=opened.fire_at
    )


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


@pytest.mark.req("OWN-06")
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
