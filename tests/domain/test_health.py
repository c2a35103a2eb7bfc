"""Readiness is judged by who keeps time and what is overdue, if anything is planned."""

import pytest

from duly.domain.health import Vitals, readiness_of
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
    assert (readiness.alive_at, readiness.next_fire_at, readiness.overdue) == vitals


def test_how_long_a_timekeeper_may_be_silent_can_be_said() -> None:
    vitals = Vitals(Instant(NOW - 2 * SECOND), LATER, 0)

    assert readiness_of(vitals, now=NOW, alive_within=Micros(2 * SECOND)).is_ready
    assert not readiness_of(vitals, now=NOW, alive_within=SECOND).is_ready
