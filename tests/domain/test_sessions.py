"""What is said of kinds that nobody runs."""

from dataclasses import replace

from duly import every
from duly.domain.instants import Instant
from duly.domain.policies import Policies
from duly.domain.schedules import Schedule, ScheduleState, Target, new_schedule
from duly.domain.sessions import warning_about, warning_about_schedule

KNOWN = frozenset({"digest", "report"})


def test_a_kind_that_somebody_runs_or_may_run_is_not_warned_of() -> None:
    assert warning_about("digest", KNOWN) is None
    assert warning_about("anything", None) is None


def test_a_kind_that_nobody_runs_is_warned_of_with_the_one_that_may_be_meant() -> None:
    assert (
        warning_about("digset", KNOWN) == "no worker that is running has a handler for 'digset'; did you mean 'digest'?"
    )
    assert warning_about("x", KNOWN) == "no worker that is running has a handler for 'x'"
    assert warning_about("x", frozenset()) == "no worker is running, so nothing runs 'x' yet"


def test_only_a_schedule_that_fires_is_warned_of() -> None:
    def schedule(kind: str) -> Schedule:
        target, now = Target(kind=kind), Instant(0)
        return new_schedule(
            schedule_id="s", owner="ann", cadence=every("1h"), target=target, policies=Policies(), now=now
        )

    plain = schedule("x")
    assert warning_about_schedule(plain, KNOWN) is not None
    assert warning_about_schedule(replace(plain, state=ScheduleState.PAUSED), KNOWN) is None
    assert warning_about_schedule(schedule("template:x"), KNOWN) is None
