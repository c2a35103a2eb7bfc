"""Schedules and their revisions."""

from datetime import UTC, datetime
from typing import Any

import pytest

from duly import InvalidInput, cron, every, once
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import NewJob
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import RunStatus
from duly.domain.schedules import (
    Schedule,
    ScheduleChanged,
    ScheduleState,
    Target,
    new_schedule,
    schedule_of_key,
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
    ("given", "field", "reason"),
    [
        ({"kind": "Work"}, "kind", "'Work' is not a name"),
        ({"pool": ""}, "pool", "'' is not a name"),
        ({"params": [1]}, "params", "is a list, not a dict"),
        ({"priority": 32_768}, "priority", "32768 is out of range"),
        ({"timeout_ms": 0}, "timeout_ms", "0 is out of range"),
        ({"timeout_ms": -1}, "timeout_ms", "-1 is out of range"),
        ({"timeout_ms": 30 * 86_400_000 + 1}, "timeout_ms", "2592000001 is out of range"),
        ({"timeout_ms": True}, "timeout_ms", "True is not a whole number"),
        ({"timeout_ms": 1.5}, "timeout_ms", "1.5 is not a whole number"),
        ({"timeout_ms": "1m"}, "timeout_ms", "'1m' is not a whole number"),
        ({"retry": 3}, "retry", "is a int"),
        ({"retry": None}, "retry", "is a NoneType"),
    ],
)
def test_a_target_is_refused_for_whatever_its_jobs_would_be(given: dict[str, Any], field: str, reason: str) -> None:
    """When the schedule is made, not when its first slot opens; and in the same words."""
    with pytest.raises(InvalidInput) as refused:
        Target(**{"kind": "work", **given})
    with pytest.raises(InvalidInput) as refused_later:
        NewJob(**{"kind": "work", **given})

    assert (refused.value.field, refused.value.reason) == (field, reason)
    assert refused.value.fix is not None
    assert str(refused.value) == str(refused_later.value)


@pytest.mark.parametrize("timeout_ms", [None, 1, 30 * 86_400_000])
def test_a_target_may_have_a_timeout_of_up_to_thirty_days(timeout_ms: int | None) -> None:
    assert Target(kind="work", timeout_ms=timeout_ms).timeout_ms == timeout_ms


def refused_policy(given: dict[str, Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        Policies(**given)

    assert refused.value.fix is not None
    return refused.value


@pytest.mark.req("CRON-03", error=True)
@pytest.mark.parametrize("overlap", ["sometimes", "", None, "SKIP", 7])
def test_an_overlap_that_is_no_policy_is_refused(overlap: object) -> None:
    refused = refused_policy({"overlap": overlap})

    assert refused.field == "overlap"
    assert refused.fix == "use one of allow, skip, queue, queue_one, replace"


@pytest.mark.req("CRON-04", error=True)
@pytest.mark.req("GRAPH-10", error=True)
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"catch_up": None}, "catch_up"),
        ({"catch_up": "all"}, "catch_up"),
        ({"catch_up_cap": 0}, "catch_up_cap"),
        ({"catch_up_cap": 100_001}, "catch_up_cap"),
        ({"catch_up_cap": "many"}, "catch_up_cap"),
    ],
)
def test_a_catch_up_that_is_no_policy_is_refused(given: dict[str, Any], field: str) -> None:
    assert refused_policy(given).field == field


@pytest.mark.req("CRON-05", error=True)
@pytest.mark.parametrize("jitter_ms", [-1, 1.5, 86_400_001, True, None, "1s"])
def test_a_jitter_that_is_no_span_of_time_is_refused(jitter_ms: object) -> None:
    assert refused_policy({"jitter_ms": jitter_ms}).field == "jitter_ms"


@pytest.mark.req("GRAPH-19")
def test_a_run_goes_on_until_it_ends_in_one_of_four_ways() -> None:
    assert {status for status in RunStatus if status.is_terminal} == {"success", "error", "skipped", "cancelled"}


def test_what_was_opened_plans_the_next_and_remembers_the_last_run() -> None:
    made = schedule()

    ran = made.standing.ran(1_800_000_060)

    assert made.next_after(1_800_000_120) == (1_800_000_180, 1_800_000_180 * SECOND)
    assert (ran.opened_through, ran.next_slot, ran.fire_at) == (made.opened_through, made.next_slot, made.fire_at)
    assert ran.last_run_at == 1_800_000_060 * SECOND
    assert ran.ran(1_800_000_000).last_run_at == ran.last_run_at


@pytest.mark.req("CRON-11", error=True)
def test_a_broken_schedule_has_a_revision_that_plans_nothing_from_what_was_opened_on() -> None:
    broken = schedule().broken(at=Instant(NOW + 500 * SECOND), reason="no such zone")

    assert (broken.state, broken.revision, broken.next_slot) == (ScheduleState.BROKEN, 2, None)
    assert broken.recorded().effective_from == 1_800_000_000


def test_fires_to_come_are_shown_with_their_jitter_while_a_schedule_is_active() -> None:
    jittery = schedule(policies=Policies(jitter_ms=5_000))

    assert [fire.slot // SECOND for fire in jittery.upcoming(2)] == [1_800_000_060, 1_800_000_120]
    assert jittery.upcoming(1)[0].fire_at == jittery.fire_at
    assert jittery.changed(at=NOW, state=ScheduleState.PAUSED).upcoming(3) == []


def test_targets_are_alike_if_what_they_ask_for_is() -> None:
    assert Target(kind="work", params={"a": [1]}) == Target(kind="work", params={"a": [1]})
    assert Target(kind="work", params={}) == Target(kind="work")
    assert Target(kind="work", params={"a": 1}) != Target(kind="work", params={"a": 2})


@pytest.mark.parametrize(
    ("key", "lane", "schedule_id"),
    [
        ("news:2026-11-16T09:00:00Z", "schedule:news", "news"),
        ("news:2026-11-16T09:00:00Z", None, "news"),
        ("a:b:2026-11-16T09:00:00Z", None, "a:b"),
        ("manual:key_1:a:b:2026-11-16T09:00:00Z", None, "a:b"),
        ("backfill:mine:news:2026-11-16T09:00:00Z", None, "news"),
        ("manual:my:key:news:2026-11-16T09:00:00Z", "schedule:news", "news"),
        ("manual:2026-11-16T09:00:00Z", None, "manual"),
        ("manual:x:2026-11-16T09:00:00Z", None, "manual:x"),
    ],
)
def test_a_slots_key_and_lane_name_its_schedule(key: str, lane: str | None, schedule_id: str) -> None:
    assert schedule_of_key(key, lane) == schedule_id
