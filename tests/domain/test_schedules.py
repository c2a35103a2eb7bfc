"""Schedules and their revisions."""

from datetime import UTC, datetime

import pytest

from duly import InvalidInput, cron, every, once
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import RunStatus
from duly.domain.schedules import (
    Schedule,
    ScheduleChanged,
    ScheduleState,
    Target,
    new_schedule,
    slot_key,
)

NOW = Instant(1_800_000_000 * SECOND + 1)


def schedule(**given: object) -> Schedule:
    values: dict[str, object] = {
        "schedule_id": "sch_1",
        "owner": "me",
        "cadence": every("1m"),
        "target": Target(kind="work"),
        "policies": Policies(),
        "now": NOW,
    }
    return new_schedule(**values | given)  # type: ignore[arg-type]


def test_slots_begin_strictly_after_now() -> None:
    assert schedule().next_slot == 1_800_000_060
    assert schedule(now=Instant(1_800_000_059 * SECOND + 999_999)).next_slot == 1_800_000_060
    assert schedule(now=Instant(1_800_000_060 * SECOND)).next_slot == 1_800_000_120


@pytest.mark.req("GRAPH-07")
def test_a_slot_has_one_key() -> None:
    assert slot_key(schedule().id, 1_800_000_060) == "sch_1:2027-01-15T08:01:00Z"


@pytest.mark.req("DEC-010")
def test_an_edit_is_in_force_after_now_and_after_what_was_opened() -> None:
    edited = schedule().changed(at=Instant(NOW + 90 * SECOND), cadence=cron("0 9 * * *", "Europe/Berlin"))

    assert edited.revision == 2
    assert edited.recorded().effective_from == 1_800_000_090
    assert edited.next_slot == int(datetime(2027, 1, 16, 8, tzinfo=UTC).timestamp())


def test_an_edit_with_the_clock_set_back_reopens_nothing() -> None:
    edited = schedule().changed(at=Instant(NOW - 3600 * SECOND), cadence=every("10s"))

    assert edited.recorded().effective_from == 1_800_000_000
    assert edited.next_slot == 1_800_000_010


def test_a_paused_schedule_plans_nothing() -> None:
    paused = schedule().changed(at=NOW, state=ScheduleState.PAUSED)

    assert (paused.next_slot, paused.fire_at) == (None, None)


def test_policies_are_careful_unless_told_otherwise() -> None:
    assert Policies() == Policies(overlap=Overlap.SKIP, catch_up=CatchUp.NONE, jitter_ms=0)


def test_a_change_of_what_somebody_else_changed_is_refused() -> None:
    with pytest.raises(ScheduleChanged, match="revision 1, not 3"):
        schedule().require_revision(3)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"schedule_id": ""}, "id"),
        ({"owner": "a\nb"}, "owner"),
        ({"cadence": "0 9 * * *"}, "cadence"),
        ({"cadence": once(datetime(2020, 1, 1, tzinfo=UTC))}, "cadence"),
    ],
)
def test_a_schedule_that_could_never_run_is_refused(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        schedule(**given)

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"overlap": "sometimes"}, "overlap"),
        ({"catch_up": None}, "catch_up"),
        ({"catch_up_cap": 0}, "catch_up_cap"),
        ({"jitter_ms": -1}, "jitter_ms"),
        ({"jitter_ms": 1.5}, "jitter_ms"),
    ],
)
def test_policies_that_mean_nothing_are_refused(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Policies(**given)  # type: ignore[arg-type]

    assert refused.value.field == field


@pytest.mark.req("GRAPH-19")
def test_a_run_never_goes_backwards() -> None:
    allowed = {(a, b) for a in RunStatus for b in RunStatus if a is not b and a.may_become(b)}

    assert all(not earlier.is_terminal for earlier, _ in allowed)
    assert (RunStatus.PENDING, RunStatus.RUNNING) in allowed
    assert (RunStatus.RUNNING, RunStatus.PENDING) not in allowed
    assert all(status.may_become(status) for status in RunStatus)
