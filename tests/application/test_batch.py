"""What is decided about slots, before anything is written."""

from dataclasses import replace

import pytest

from duly import every
from duly.application.batch import Batch, Drawn, refusal_of
from duly.application.pace import Pace
from duly.domain.cadence import UnreadableCron
from duly.domain.coverage import Outage
from duly.domain.decisions import Fate
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import Entry
from duly.domain.openings import InFlight
from duly.domain.policies import Overlap, Policies
from duly.domain.pools import Pool, PoolDraining, PoolMode, UnknownPool
from duly.domain.runs import Run
from duly.domain.schedules import Schedule, ScheduleState, Standing, Target, new_schedule

BORN = Instant(1_800_000_000 * SECOND)
TARGET = Target(kind="report", params={"of": "today"}, pool=PoolName("wide"), priority=3)


def minutely(name: str = "s", *, overlap: Overlap = Overlap.QUEUE) -> Schedule:
    return new_schedule(
        schedule_id=name,
        owner="ann",
        cadence=every("1m"),
        target=TARGET,
        policies=Policies(overlap=overlap),
        now=BORN,
    )


def after(minutes: float) -> Instant:
    return Instant(BORN + int(minutes * 60) * SECOND)


def batch(minutes: float) -> Batch:
    return Batch(Drawn(after(minutes), "run_1", "job_1", 1_000), Pace())


def judged(schedule: Schedule, minutes: float) -> tuple[Standing, list[Run], list[Entry]]:
    collecting = batch(minutes)
    opened = collecting.judge(schedule, (), InFlight())
    rows = collecting._rows
    return opened, [row.run for row in rows], [row.entry for row in rows if row.entry]


@pytest.mark.req("GRAPH-08")
def test_a_slot_is_decided_together_with_its_successor() -> None:
    opened, runs, _ = judged(minutely(), 1)

    assert [run.scheduled_for for run in runs] == [after(1)]
    assert (opened.opened_through, opened.next_slot, opened.last_run_at) == (
        after(1) // SECOND,
        after(2) // SECOND,
        after(1),
    )


@pytest.mark.req("CRON-06")
@pytest.mark.req("GRAPH-07")
def test_a_rerun_repeats_every_id_key_and_place() -> None:
    assert judged(minutely(), 3) == judged(minutely(), 3)


@pytest.mark.req("CRON-06", error=True)
def test_ids_keys_and_places_are_never_shared() -> None:
    collecting = batch(50)
    for name in ("a", "b"):
        collecting.judge(minutely(name), (), InFlight())
    runs = [row.run for row in collecting._rows]
    entries = [row.entry for row in collecting._rows if row.entry]

    assert len({run.id for run in runs}) == 100
    assert len({(entry.id, entry.new.key, entry.position) for entry in entries}) == 100
    assert len({entry.position for entry in entries}) == 100
    assert [entry.ledger_run for entry in entries] == [run.id for run in runs]


@pytest.mark.req("INV-005")
def test_a_job_is_a_snapshot_of_the_target() -> None:
    _, _, (entry,) = judged(minutely(), 1)

    assert (entry.new.kind, entry.payload, entry.new.pool, entry.new.priority) == (
        "report",
        '{"of":"today"}',
        "wide",
        3,
    )


@pytest.mark.req("GRAPH-09")
@pytest.mark.parametrize("overlap", list(Overlap))
def test_runs_of_a_schedule_share_a_lane_unless_they_may_overlap(overlap: Overlap) -> None:
    _, _, (entry,) = judged(minutely(overlap=overlap), 1)

    assert entry.new.lane == (None if overlap is Overlap.ALLOW else "schedule:s")


@pytest.mark.req("CRON-11")
@pytest.mark.req("CRON-11", error=True)
def test_a_schedule_that_cannot_be_evaluated_breaks_and_leaves_no_row() -> None:
    collecting = batch(1)
    unreadable = replace(minutely("b"), cadence=UnreadableCron("* * * * *", "Mars/Olympus", "no such zone"))

    collecting.judge(minutely("a"), (), InFlight())
    collecting.judge(unreadable, (), InFlight())
    collecting.judge(minutely("c"), (), InFlight())

    (broken,) = collecting._broken
    assert broken.state is ScheduleState.BROKEN
    assert "no such zone" in (broken.state_reason or "")
    assert [row.run.schedule_id for row in collecting._rows] == ["a", "c"]
    assert [fact.fate for fact in collecting.decisions] == [Fate.BROKEN]


def test_a_slot_that_is_opened_before_it_fires_puts_its_job_for_then() -> None:
    collecting = batch(0.5)

    collecting.judge(minutely(), (), InFlight(), until=after(1))

    (row,) = collecting._rows
    assert row.entry is not None
    assert row.entry.run_at == after(1)


@pytest.mark.req("OWN-02")
def test_a_gap_is_told_with_its_reason() -> None:
    collecting = batch(10)

    collecting.judge(minutely(), [Outage(after(0.5), after(9.5))], InFlight())

    (fact,) = collecting.decisions
    assert (fact.fate, fact.slot, fact.last, fact.count, fact.reason) == (
        Fate.MISSED,
        after(1),
        after(9),
        9,
        "outage",
    )


@pytest.mark.req("CRON-07")
@pytest.mark.req("CRON-07", error=True)
def test_a_pool_that_is_not_there_or_drains_takes_no_job() -> None:
    name = PoolName("wide")

    assert isinstance(refusal_of(None, name), UnknownPool)
    assert isinstance(refusal_of(Pool(name=name, slots=1, mode=PoolMode.DRAINING), name), PoolDraining)
    assert refusal_of(Pool(name=name, slots=1, mode=PoolMode.PAUSED), name) is None
    assert refusal_of(Pool(name=name, slots=0), name) is None
