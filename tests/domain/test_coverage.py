"""Which silences are outages."""

import pytest

from duly.domain.coverage import OUTAGE_AFTER, Outage, Span, extended, outages_between
from duly.domain.instants import SECOND, Instant


def at(seconds: int) -> Instant:
    return Instant(seconds * SECOND)


@pytest.mark.req("OWN-06")
def test_a_quick_restart_is_no_outage() -> None:
    assert outages_between([Span(at(0), at(100)), Span(at(160), at(200))]) == []


def test_a_longer_silence_is_one() -> None:
    assert outages_between([Span(at(0), at(100)), Span(at(161), at(200))]) == [Outage(at(100), at(161))]


def test_spans_of_several_timekeepers_cover_for_each_other() -> None:
    spans = [Span(at(0), at(500)), Span(at(10), at(100)), Span(at(450), at(900))]

    assert outages_between(spans) == []


def test_a_heartbeat_extends_the_span() -> None:
    assert extended(Span(at(0), at(10)), at(20)) == (Span(at(0), at(20)), False)


def test_the_first_heartbeat_and_one_after_an_outage_begin_a_span() -> None:
    late = Instant(at(10) + OUTAGE_AFTER + 1)

    assert extended(None, at(5)) == (Span(at(5), at(5)), True)
    assert extended(Span(at(0), at(10)), late) == (Span(late, late), True)


def test_a_clock_set_back_uncovers_nothing() -> None:
    assert extended(Span(at(0), at(1000)), at(10)) == (Span(at(0), at(1000)), False)
