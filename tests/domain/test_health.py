"""Readiness is judged by who keeps time and what is overdue, if anything is planned."""

import pytest

from duly.domain.health import Vitals, readiness_of
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, Micros

NOW = Instant(1_800_000_000 * SECOND)
LATER = Instant(NOW + SECOND)


@pytest.mark.parametrize(
    ("vitals", "problems"),
    [
        (Vitals(None, None, 0), 0),
        (Vitals(Instant(0), None, 0), 0),
        (Vitals(NOW, LATER, 0), 0),
        (Vitals(Instant(NOW - 15 * SECOND), LATER, 0), 0),
        (Vitals(Instant(NOW + 60 * SECOND), LATER, 0), 0),
        (Vitals(Instant(NOW - 15 * SECOND - 1), LATER, 0), 1),
        (Vitals(None, LATER, 0), 1),
        (Vitals(NOW, LATER, 1), 1),
        (Vitals(None, LATER, 1), 2),
    ],
)
def test_a_store_is_ready_unless_there_is_a_problem(vitals: Vitals, problems: int) -> None:
    readiness = readiness_of(vitals, now=NOW)

    assert (readiness.is_ready, len(readiness.problems)) == (not problems, problems)
    assert (readiness.alive_at, readiness.next_fire_at, readiness.overdue, readiness.longest_overdue) == vitals


def test_how_long_a_timekeeper_may_be_silent_can_be_said() -> None:
    vitals = Vitals(Instant(NOW - 2 * SECOND), LATER, 0)

    assert readiness_of(vitals, now=NOW, alive_within=Micros(2 * SECOND)).is_ready
    assert not readiness_of(vitals, now=NOW, alive_within=SECOND).is_ready


@pytest.mark.parametrize(
    ("overdue", "names", "said", "named"),
    [
        (1, "a", "1 schedule is overdue by more than 5 s", ": a"),
        (3, "abc", "3 schedules are overdue by more than 5 s", ": a, b, c"),
        (9, "abc", "9 schedules are overdue by more than 5 s", ": a, b, c and 6 more"),
    ],
)
def test_what_is_overdue_is_counted_and_named(overdue: int, names: str, said: str, named: str) -> None:
    readiness = readiness_of(Vitals(None, LATER, overdue, tuple(map(ScheduleId, names))), now=NOW)

    assert readiness.problems[-1] == said
    assert readiness.problems_with_names == (readiness.problems[0], said + named)
