"""What front doors say in JSON is what the core says, and what they are told is what the core is asked."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly.domain.cadence import Cadence, UnreadableCron, cron, every, once
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, Owner, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.payloads import payload_of
from duly.domain.policies import Policies
from duly.domain.retries import DEFAULT_RETRY
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import Schedule, Target, new_schedule
from duly.wire import cadences
from duly.wire.moments import moment_from
from duly.wire.plans import cadence_of, changes_of, target_of
from duly.wire.pointers import pointer_of, said_of
from duly.wire.schedules import NewSchedule, SchedulePatch, schedule_shape
from duly.wire.strict_json import MalformedJson, value_from
from duly.wire.suggestions import nearest

NOW = Instant(1_800_000_000 * SECOND)
LATER = datetime(2099, 1, 1, tzinfo=UTC)


def _schedule(cadence: Cadence | None = None) -> Schedule:
    return new_schedule(
        schedule_id="a",
        owner="ann",
        cadence=cadence or cron("0 9 * * *", "Europe/Berlin"),
        target=Target(kind="greet", params={"to": "you"}),
        policies=Policies(),
        now=NOW,
    )


@pytest.mark.req("GRAPH-11")
@pytest.mark.parametrize(
    "cadence",
    [
        cron("0 9 * * MON-FRI", "Europe/Berlin"),
        cron("*/5 * * * * *"),
        every("1h30m"),
        every("15m", anchor=datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC)),
        once(LATER),
        cron("@daily").within(start_at=datetime(2026, 1, 1, tzinfo=UTC)),
        every("2d").within(start_at=datetime(2026, 1, 1, tzinfo=UTC), end_at=LATER),
    ],
)
def test_flat_fields_say_a_cadence_and_give_it_back(cadence: Cadence) -> None:
    assert cadences.cadence_of(cadences.flat(cadence)) == cadence


def test_a_cron_that_can_no_longer_be_read_is_shown_as_it_was_written() -> None:
    fields = cadences.flat(UnreadableCron("0 9 * * *", "Gone/Zone", "it left"))

    assert (fields["cron"], fields["timezone"]) == ("0 9 * * *", "Gone/Zone")


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/cron"),
        ({"cron": "0 9 * * *", "every": "1h"}, "/every"),
        ({"cron": "0 9 * *"}, "/cron"),
        ({"cron": "0 9 * * *", "timezone": "Nowhere"}, "/timezone"),
        ({"every": "0s"}, "/every"),
        ({"every": "1h", "timezone": "UTC"}, "/timezone"),
        ({"at": LATER, "anchor": LATER}, "/anchor"),
    ],
)
def test_a_cadence_that_cannot_be_meant_names_its_place(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        cadences.cadence_of(fields)

    assert pointer_of(refused.value) == pointer
    assert said_of(refused.value).startswith(pointer[1:])


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tz", "timezone"), ("Cron", "cron"), ("params", "input"), ("interval", "every"), ("xyz", None), ("t" * 99, None)],
)
def test_a_name_that_is_nearly_known_leads_to_the_known_one(name: str, meant: str | None) -> None:
    assert nearest(name, NewSchedule.model_fields) == meant


@pytest.mark.req("GRAPH-11")
def test_a_patch_asks_only_for_what_it_names() -> None:
    schedule = _schedule()

    assert changes_of(schedule, SchedulePatch(enabled=False)) == {"enabled": False}
    assert changes_of(schedule, SchedulePatch()) == {}
    (target,) = changes_of(schedule, SchedulePatch(priority=4)).values()
    assert (target.kind, target.payload, target.priority) == ("greet", schedule.target.payload, 4)
    assert changes_of(schedule, SchedulePatch(every="1h")) == {"cadence": every("1h")}
    assert changes_of(schedule, SchedulePatch(timezone=None)) == {"cadence": cron("0 9 * * *")}


def test_a_patch_takes_a_once_back_to_a_cron() -> None:
    schedule = _schedule(once(LATER))

    assert changes_of(schedule, SchedulePatch(cron="0 9 * * *")) == {"cadence": cron("0 9 * * *")}


@pytest.mark.req("GRAPH-12")
def test_a_schedule_shows_its_last_run() -> None:
    run = Run(
        id=RunId("run_1"),
        schedule_id=ScheduleId("a"),
        owner=Owner("ann"),
        revision=1,
        scheduled_for=NOW,
        fire_at=NOW,
        opened_at=NOW,
        status=RunStatus.SUCCESS,
        job_id=JobId("job_1"),
        trace_id="trace-7",
        started_at=NOW,
        completed_at=Instant(NOW + 1),
    )

    shown = schedule_shape(_schedule(), run).model_dump(mode="json")

    assert shown["last_run"] == {
        "id": "run_1",
        "status": "success",
        "scheduled_for": "2027-01-15T08:00:00Z",
        "started_at": "2027-01-15T08:00:00Z",
        "completed_at": "2027-01-15T08:00:00.000001Z",
        "trace_id": "trace-7",
    }
    assert schedule_shape(_schedule(), None).last_run is None


def test_a_new_schedule_asks_for_what_it_says() -> None:
    new = NewSchedule(target="greet", every="1h", input={"a": [1]}, timeout_ms=5)

    assert cadence_of(new) == every("1h")
    payload = payload_of({"a": [1]}, field="params")
    assert target_of(new) == Target(kind="greet", payload=payload, timeout_ms=5, retry=DEFAULT_RETRY)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-29T01:00:00Z", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("2026-03-29t03:00:00+02:00", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("2026-03-29T01:00:00.250z", datetime(2026, 3, 29, 1, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_instants_are_read_with_their_offset(text: str, moment: datetime) -> None:
    assert moment_from(text) == moment


@pytest.mark.parametrize(
    "value",
    ["2026-03-29", "2026-03-29T01:00:00", "2026-03-29 01:00:00Z", "20260329T010000Z", "2026-02-30T00:00:00Z", 1, True,
     "0001-01-01T00:00:00+01:00", "2026-03-29T24:00:00Z", "2026-03-29T23:59:60Z", "\u0662026-03-29T01:00:00Z", ""],
)  # fmt: skip
def test_what_names_no_instant_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="no instant"):
        moment_from(value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@settings(deadline=None)
@given(_JSON)
def test_what_json_says_is_read_as_it_is(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert value_from(text.encode()) == value


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with suppress(MalformedJson):
        json.loads(json.dumps(value_from(text)))
