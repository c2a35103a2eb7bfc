"""Counts of what became of slots."""

import pytest

from duly.application.tally import DRIFT_BOUNDS_MS, Drift, Tally
from duly.domain.decisions import Decision, Fate
from duly.domain.ids import ScheduleId
from duly.domain.instants import Instant, Micros
from duly.domain.runs import GapReason


def decision(fate: Fate, *, count: int = 1, late_ms: int = 0) -> Decision:
    return Decision(schedule_id=ScheduleId("s"), at=Instant(0), fate=fate, count=count, late=Micros(late_ms * 1_000))


@pytest.mark.req("CRON-12")
@pytest.mark.parametrize(
    ("fate", "counter"),
    [
        (Fate.OPENED, "runs_emitted"),
        (Fate.CAUGHT_UP, "runs_emitted"),
        (Fate.CAUGHT_UP, "runs_caught_up"),
        (Fate.SKIPPED, "runs_skipped_overlap"),
        (Fate.FAILED, "runs_failed_launch"),
        (Fate.MISSED, "slots_missed"),
        (Fate.BROKEN, "schedules_broken"),
    ],
)
def test_every_fate_is_counted_under_its_name(fate: Fate, counter: str) -> None:
    tally = Tally()

    tally.decided([decision(fate), decision(fate)], due=2)

    assert getattr(tally, counter) == 2
    assert tally.schedules_due == 2


@pytest.mark.req("CRON-12", error=True)
@pytest.mark.parametrize("fate", [Fate.OWED, Fate.STOPPED, Fate.REPLACED])
def test_what_is_no_run_and_no_loss_is_told_and_not_counted(fate: Fate) -> None:
    heard: list[Decision] = []
    tally = Tally(say=heard.append)

    tally.decided([decision(fate)])

    assert tally == Tally(say=heard.append)
    assert [told.fate for told in heard] == [fate]


@pytest.mark.req("RISK-04")
def test_a_gap_counts_every_slot_that_was_missed_and_can_raise_an_alarm() -> None:
    alarms: list[str] = []
    tally = Tally(say=lambda fact: alarms.append(f"{fact.count} missed: {fact.reason}"))
    gap = Decision(schedule_id=ScheduleId("s"), at=Instant(0), fate=Fate.MISSED, count=59, reason=GapReason.OUTAGE)

    tally.decided([gap])

    assert tally.slots_missed == 59
    assert alarms == ["59 missed: outage"]


@pytest.mark.req("CRON-12")
def test_drift_falls_into_the_first_bound_that_holds_it() -> None:
    drift = Drift()

    for late_ms in (0, 1, 1.5, 60_000, 60_001):
        drift.add(Micros(int(late_ms * 1_000)))

    assert drift.counts[0] == 2
    assert drift.counts[1] == 1
    assert drift.counts[len(DRIFT_BOUNDS_MS) - 1 :] == [1, 1]
    assert drift.total == 120_003_500


def test_only_slots_that_were_opened_in_their_turn_have_drift() -> None:
    tally = Tally()

    tally.decided([decision(Fate.OPENED, late_ms=3), decision(Fate.CAUGHT_UP, late_ms=9_000)])

    assert sum(tally.drift.counts) == 1
    assert tally.drift.total == 3_000


def test_failures_are_counted_and_the_last_one_is_kept() -> None:
    tally = Tally()

    tally.failed("open", ValueError("no"))

    assert (tally.failures, tally.last_failure) == (1, "open: ValueError: no")
