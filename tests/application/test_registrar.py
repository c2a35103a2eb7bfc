"""What deployers and executors elsewhere say, in their own words, and what it means here."""

from datetime import UTC, datetime
from typing import Any

import pytest

from duly.application.registrar import ScheduleInput, key_of
from duly.domain.cadence import Bounded
from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.runs import Run, RunKind, RunStatus
from duly.domain.workflows import CallBack, CalledBack, run_key
from duly.settings import settings_from
from duly.wire.cron import RunCallBack, run_shape, status_of


def asked(**given: Any) -> ScheduleInput:
    return ScheduleInput(**{"workflow_id": "n", "version": 1, "user_id": "ann", "cron_expr": "0 7 * * *", **given})


def run(**given: Any) -> Run:
    return Run(
        id=RunId("run_1"),
        schedule_id=ScheduleId("mine"),
        owner=Owner("ann"),
        revision=1,
        scheduled_for=Instant(1_700_000_000 * SECOND),
        fire_at=Instant(1_700_000_000 * SECOND),
        opened_at=Instant(1_700_000_001 * SECOND),
        **given,
    )


@pytest.mark.req("CRON-01")
def test_what_is_left_out_has_its_default_and_bounds_are_kept() -> None:
    bounded = asked(start_at=datetime(2026, 1, 1, tzinfo=UTC), overlap_policy="allow").cadence()

    assert isinstance(bounded, Bounded)
    assert asked(overlap_policy="queue").policies(Policies(catch_up=CatchUp.SPREAD, jitter_ms=9)) == Policies(
        overlap=Overlap.QUEUE, catch_up=CatchUp.SPREAD, jitter_ms=9
    )


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cron_expr": "99 * * * *"}, "cron_expr"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"overlap_policy": "x"}, "overlap_policy"),
        ({"catchup_policy": "x"}, "catchup_policy"),
        ({"jitter_ms": -1}, "jitter_ms"),
    ],
)
def test_what_is_wrong_is_called_as_it_was_given(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        (asked(**wrong).cadence(), asked(**wrong).policies(Policies()))

    assert refused.value.field == field


@pytest.mark.req("CRON-15")
@pytest.mark.parametrize(
    ("status", "started", "shown"),
    [
        (RunStatus.PENDING, False, "ENQUEUED"),
        (RunStatus.RUNNING, True, "STARTED"),
        (RunStatus.SUCCESS, True, "SUCCESS"),
        (RunStatus.ERROR, True, "FAILED"),
        (RunStatus.SKIPPED, False, "SKIPPED"),
        (RunStatus.CANCELLED, False, "SKIPPED"),
        (RunStatus.CANCELLED, True, "FAILED"),
    ],
)
def test_every_status_has_its_word(status: RunStatus, started: bool, shown: str) -> None:
    begun = Instant(1_700_000_002 * SECOND) if started else None

    assert status_of(run(status=status, started_at=begun)) == shown
    assert run_shape(run(status=status)).idempotency_key == run_key("mine", 1_700_000_000)


def test_a_run_by_hand_has_a_key_of_its_own() -> None:
    assert key_of(run(kind=RunKind.MANUAL, own_key="manual:k")) != key_of(run())


def test_a_call_back_says_a_result_or_an_error() -> None:
    said = [RunCallBack(status=status, result={"n": 1}, error="no").said() for status in CalledBack]

    assert said == [
        CallBack(CalledBack.STARTED, None),
        CallBack(CalledBack.SUCCESS, '{"n":1}'),  # type: ignore[arg-type]
        CallBack(CalledBack.FAILED, '"no"'),  # type: ignore[arg-type]
    ]


@pytest.mark.req("CRON-13")
def test_no_storm_follows_an_outage_because_the_window_and_the_cap_are_bounded() -> None:
    for name, too_much in (("DULY_LOOKAHEAD_MS", "3600001"), ("DULY_MAX_CATCHUP_PER_TICK", "100000000")):
        with pytest.raises(InvalidInput, match=name):
            settings_from({name: too_much})
    assert settings_from({"DULY_LOOKAHEAD_MS": "3600000"}).lookahead_ms == 3_600_000
