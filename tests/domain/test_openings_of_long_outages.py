"""The plan against one that looks at each slot: the same verdicts, however long the outage, whatever the jitter."""

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, groupby, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly import cron, every, once
from duly.domain.cadence import Cadence
from duly.domain.coverage import Outage
from duly.domain.ids import RunId
from duly.domain.instants import SECOND, Instant
from duly.domain.openings import MOST_AT_ONCE, InFlight, Plan, plan
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import GapReason, Reason
from duly.domain.schedules import Schedule, Target, new_schedule
from tests.brute_force import epoch

ONE_STANDS_FOR_ALL = (Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.REPLACE)
YEAR = 365 * 86_400


def schedule_of(cadence: Cadence, *, born: int, **policies: object) -> Schedule:
    return new_schedule(
        schedule_id="s",
        owner="me",
        cadence=cadence,
        target=Target(kind="work"),
        policies=Policies(**policies),  # type: ignore[arg-type]
        now=Instant(born * SECOND),
    )


def planned(schedule: Schedule, now: Instant, outages: Sequence[Outage], in_flight: InFlight) -> Plan:
    run_ids = (RunId(f"run {n}") for n in count(1))
    return plan(schedule, now=now, outages=outages, in_flight=in_flight, run_ids=run_ids)


# The reference: every slot is looked at by itself.


@dataclass
class Row:
    slot: int
    fire_at: int
    run: str
    reason: Reason | None = None


@dataclass
class Verdicts:
    rows: list[Row] = field(default_factory=list)
    gaps: list[tuple[int, int, int, GapReason]] = field(default_factory=list)
    arrears: list[tuple[int, int, int]] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    through: int = 0


def slot_by_slot(schedule: Schedule, now: Instant, outages: Sequence[Outage], in_flight: InFlight) -> Verdicts:
    verdicts = Verdicts(through=schedule.opened_through)
    running, waiting = list(in_flight.running), list(in_flight.waiting)

    def give_row(slot: int) -> None:
        row = Row(slot, schedule.fires_at(slot), f"run {len(verdicts.rows) + 1}")
        overlap = schedule.policies.overlap
        if overlap == Overlap.SKIP and (running or waiting):
            row.reason = Reason.OVERLAP
        elif overlap == Overlap.QUEUE_ONE and waiting:
            row.reason = Reason.COALESCED
        else:
            if overlap == Overlap.REPLACE:
                for earlier in verdicts.rows:
                    earlier.reason = Reason.REPLACED
                    if earlier.run in waiting:
                        waiting.remove(earlier.run)
                verdicts.withdrawn += waiting
                verdicts.stopped = list(running)
                waiting.clear()
            waiting.append(row.run)
        verdicts.rows.append(row)

    def miss(slots: list[int]) -> None:
        if schedule.policies.catch_up == CatchUp.NONE:
            verdicts.gaps.append((slots[0], slots[-1], len(slots), GapReason.OUTAGE))
        elif schedule.policies.overlap in ONE_STANDS_FOR_ALL:
            *older, newest = slots
            if older:
                verdicts.gaps.append((older[0], older[-1], len(older), GapReason.SUPERSEDED))
            give_row(newest)
        else:
            verdicts.arrears.append((slots[0], slots[-1], len(slots)))

    def is_missed(slot: int) -> bool:
        return any(outage.start < schedule.fires_at(slot) < outage.end for outage in outages)

    for missed, group in groupby(due_slots(schedule, now), key=is_missed):
        slots = list(group)
        if len(verdicts.rows) >= MOST_AT_ONCE:
            break
        if missed:
            miss(slots)
        else:
            slots = slots[: MOST_AT_ONCE - len(verdicts.rows)]
            for slot in slots:
                give_row(slot)
        verdicts.through = slots[-1]
    return verdicts


def due_slots(schedule: Schedule, now: Instant) -> list[int]:
    slots = []
    for slot in schedule.cadence.seconds_after(schedule.opened_through):
        if schedule.fires_at(slot) > now:
            break
        slots.append(slot)
    return slots


def verdicts_of(result: Plan) -> Verdicts:
    return Verdicts(
        rows=[Row(row.slot, row.fire_at, row.run_id, row.reason) for row in result.openings],
        gaps=[(gap.first, gap.last, gap.count, gap.reason) for gap in result.gaps],
        arrears=[(owed.first, owed.last, owed.count) for owed in result.arrears],
        withdrawn=result.withdraw,
        stopped=result.stop,
        through=result.opened_through,
    )


# Spring 2027 in Berlin: the clock goes forward on 28 March; autumn: back on 31 October; both at 01:00 UTC.
CADENCES = [
    every("1m"),
    every("7s"),
    every("1s"),
    cron("* * * * *", "Europe/Berlin"),
    cron("*/10 1-3 * * *", "Europe/Berlin"),
    cron("5,30,31 1-3 * * *", "Europe/Berlin"),
    cron("*/20 0,30 * * * *", "Australia/Lord_Howe"),
    cron("0 9,10,17 * * MON-FRI"),
    every("1m").within(start_at=datetime(2027, 11, 1, tzinfo=UTC), end_at=datetime(2027, 11, 1, 0, 40, tzinfo=UTC)),
    once(datetime(2027, 11, 1, tzinfo=UTC)),
]
BIRTHS = [
    epoch(2027, 1, 1),
    epoch(2027, 3, 28),
    epoch(2027, 3, 28, 0, 50),
    epoch(2027, 10, 30, 23),
    epoch(2027, 10, 31),
]


@st.composite
def situations(draw: st.DrawFn) -> tuple[Schedule, Instant, list[Outage], InFlight]:
    """Instants are chosen around fires, because that is where an outage's borders matter."""
    cadence = draw(st.sampled_from(CADENCES))
    schedule = schedule_of(
        cadence,
        born=draw(st.sampled_from(BIRTHS)),
        overlap=draw(st.sampled_from(Overlap)),
        catch_up=draw(st.sampled_from(CatchUp)),
        jitter_ms=draw(st.sampled_from([0, 0, 1, 999, 4_000, 60_000, 86_400_000])),
    )
    most = draw(st.sampled_from([3, 12, 60, MOST_AT_ONCE + 2, 2 * MOST_AT_ONCE]))
    fires = [schedule.fires_at(slot) for slot in islice(cadence.seconds_after(schedule.opened_through), most)]
    beside = st.sampled_from([-SECOND // 2, -1, 0, 0, 1, SECOND])
    instants = st.builds(lambda fire, off: Instant(fire + off), st.sampled_from(fires), beside)
    borders = draw(st.lists(st.tuples(instants, instants), max_size=5))
    outages = [Outage(min(pair), max(pair)) for pair in borders]
    now = draw(st.one_of(st.just(Instant(fires[-1] + 1)), instants))
    in_flight = InFlight(draw(st.sampled_from([[], ["r"]])), draw(st.sampled_from([[], ["w"], ["w", "v"]])))
    return schedule, now, outages, in_flight


@pytest.mark.req("CRON-04")
@pytest.mark.req("GRAPH-10")
@settings(deadline=None, max_examples=600)
@given(situations())
def test_counting_missed_slots_decides_as_looking_at_each_would(
    situation: tuple[Schedule, Instant, list[Outage], InFlight],
) -> None:
    expected = slot_by_slot(*situation)

    result = planned(*situation)

    assert verdicts_of(result) == expected
    assert len(result.openings) <= MOST_AT_ONCE


@settings(deadline=None, max_examples=200)
@given(situations())
def test_planning_in_parts_leaves_no_slot_out(situation: tuple[Schedule, Instant, list[Outage], InFlight]) -> None:
    schedule, now, outages, in_flight = situation
    due = due_slots(schedule, now)
    accounted = 0

    for _ in range(len(due) // MOST_AT_ONCE + 2):
        result = planned(schedule, now, outages, in_flight)
        accounted += len(result.openings)
        accounted += sum(gap.count for gap in result.gaps) + sum(owed.count for owed in result.arrears)
        schedule = schedule.changed(at=Instant(result.opened_through * SECOND))

    assert accounted == len(due)
    assert schedule.opened_through == (due[-1] if due else schedule.opened_through)


# Long outages cost what short ones do.


@pytest.mark.req("GRAPH-10")
@pytest.mark.parametrize("policies", [{}, {"jitter_ms": 60_000}, {"catch_up": "spread", "overlap": "queue"}])
@pytest.mark.parametrize(
    ("cadence", "seconds", "missed"),
    [
        (every("1m"), 30 * 86_400, 43_200),
        (cron("* * * * *", "Europe/Berlin"), 30 * 86_400, 43_200),
        (every("1s"), YEAR, YEAR),
        (cron("* * * * * *", "Europe/Berlin"), YEAR, YEAR),
    ],
)
def test_a_long_outage_is_one_entry_that_takes_neither_time_nor_memory(
    cadence: Cadence, seconds: int, missed: int, policies: dict[str, object]
) -> None:
    schedule = schedule_of(cadence, born=epoch(2027), **policies)
    end = epoch(2027) + seconds
    # Borders halfway between slots, where no jitter of theirs reaches.
    pace = seconds // missed * SECOND
    outage = Outage(Instant(epoch(2027) * SECOND + pace // 2), Instant(end * SECOND + pace // 2))
    tracemalloc.start()
    began = time.process_time()

    result = planned(schedule, Instant(outage.end + 2 * pace), [outage], InFlight())

    took, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    entries = [(gap.first, gap.last, gap.count) for gap in result.gaps]
    entries += [(owed.first, owed.last, owed.count) for owed in result.arrears]
    assert entries == [(epoch(2027) + pace // SECOND, end, missed)]
    assert took < 0.1
    assert peak < 1_000_000


def test_a_thousand_short_outages_are_passed_in_one_go() -> None:
    yearly = schedule_of(cron("0 0 1 7 *"), born=epoch(2027))
    outages = [
        Outage(Instant((epoch(2027) + 9_000 * n) * SECOND), Instant((epoch(2027) + 9_000 * n + 90) * SECOND))
        for n in range(1_000)
    ]

    result = planned(yearly, Instant(epoch(2027, 12) * SECOND), outages, InFlight())

    assert [row.slot for row in result.openings] == [epoch(2027, 7)]


@pytest.mark.req("CRON-04")
def test_a_superseded_gap_ends_with_the_slot_before_the_newest_missed() -> None:
    weekdays = schedule_of(cron("0 9 * * MON-FRI"), born=epoch(2027, 1, 4), overlap="skip", catch_up="fire_immediately")
    outage = Outage(Instant(epoch(2027, 1, 4, 1) * SECOND), Instant(epoch(2027, 1, 11, 12) * SECOND))

    result = planned(weekdays, outage.end, [outage], InFlight())

    (gap,) = result.gaps
    friday, monday = epoch(2027, 1, 8, 9), epoch(2027, 1, 11, 9)
    assert (gap.last, gap.count, gap.reason) == (friday, 5, GapReason.SUPERSEDED)
    assert [row.slot for row in result.openings] == [monday]


def test_the_newest_missed_takes_the_last_row_and_the_late_slot_after_it_waits() -> None:
    schedule = schedule_of(every("1m"), born=epoch(2027), overlap="skip", catch_up="fire_immediately")
    minutes = [Instant((epoch(2027) + 60 * n) * SECOND) for n in range(MOST_AT_ONCE + 5)]
    outage = Outage(Instant(minutes[MOST_AT_ONCE - 1] + 1), Instant(minutes[MOST_AT_ONCE + 2] + 1))

    result = planned(schedule, minutes[MOST_AT_ONCE + 4], [outage], InFlight())

    assert len(result.openings) == MOST_AT_ONCE
    assert result.opened_through * SECOND == minutes[MOST_AT_ONCE + 2]
