"""Which silences are outages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.coverage import OUTAGE_AFTER, Outage, Span, extended, outages_between
from duly.domain.instants import SECOND, Instant


def at(seconds: int) -> Instant:
    return Instant(seconds * SECOND)


def kept(heartbeats: list[int]) -> list[Span]:
    """The spans that heartbeats leave behind, as a store would keep them."""
    spans: list[Span] = []
    for heartbeat in heartbeats:
        span, is_new = extended(spans[-1] if spans else None, Instant(heartbeat))
        spans = [*spans, span] if is_new else [*spans[:-1], span]
    return sorted(spans, key=lambda span: span.start)


@pytest.mark.req("OWN-06")
def test_a_quick_restart_is_no_outage() -> None:
    assert outages_between([Span(at(0), at(100)), Span(at(160), at(200))]) == []


@pytest.mark.req("OWN-06", error=True)
def test_a_longer_silence_is_one() -> None:
    assert outages_between([Span(at(0), at(100)), Span(at(161), at(200))]) == [Outage(at(100), at(161))]


@pytest.mark.req("OWN-06")
def test_a_silence_of_exactly_the_limit_is_lateness_and_a_microsecond_more_is_an_outage() -> None:
    limit = Instant(at(100) + OUTAGE_AFTER)

    assert outages_between(kept([at(100), limit])) == []
    assert outages_between(kept([at(100), limit + 1])) == [Outage(at(100), Instant(limit + 1))]
    assert outages_between([Span(at(0), at(100)), Span(limit, limit)]) == []


@pytest.mark.req("OWN-06")
def test_neither_the_last_heartbeat_before_an_outage_nor_the_first_after_it_is_inside() -> None:
    outage = Outage(at(100), at(200))

    assert not outage.holds(at(100))
    assert outage.holds(at(100) + 1)
    assert outage.holds(at(200) - 1)
    assert not outage.holds(at(200))


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


@pytest.mark.req("OWN-06")
def test_a_clock_set_back_into_what_stands_as_an_outage_ends_it_there() -> None:
    """A clock was wrong by an hour for one heartbeat; who kept time through that hour missed nothing of it."""
    spans = kept([at(0), at(3_600), at(10), at(15)])

    assert spans == [Span(at(0), at(0)), Span(at(10), at(3_600))]
    assert outages_between(spans) == []


@pytest.mark.req("OWN-06")
@given(st.lists(st.integers(0, 500), min_size=1, max_size=30))
def test_nobody_misses_the_instant_of_a_heartbeat_wherever_clocks_are_set(seconds: list[int]) -> None:
    outages = outages_between(kept([at(second) for second in seconds]))

    assert not [second for second in seconds if any(outage.holds(at(second)) for outage in outages)]


@given(st.lists(st.integers(1, 130), min_size=1, max_size=30))
def test_the_outages_are_the_silences_longer_than_the_limit(waits: list[int]) -> None:
    heartbeats = [at(sum(waits[:n])) for n in range(len(waits) + 1)]

    silences = [Outage(a, b) for a, b in pairwise(heartbeats) if b - a > OUTAGE_AFTER]

    assert outages_between(kept(list(heartbeats))) == silences
