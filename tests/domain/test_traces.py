"""W3C Trace Context, read strictly, and ids that are the same wherever they are worked out."""

import pytest

from duly.domain.traces import Trace, is_trace_id, span_id_from, trace_id_from, trace_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.req("GRAPH-31")
def test_a_header_is_read_and_written_alike() -> None:
    assert trace_of(f"00-{TRACE}-{SPAN}-01") == Trace(TRACE, SPAN)
    assert trace_of(f"00-{TRACE}-{SPAN}-02") == Trace(TRACE, SPAN, is_sampled=False)
    assert trace_of(f"cc-{TRACE}-{SPAN}-01-what-will-be") == Trace(TRACE, SPAN)
    assert Trace(TRACE, SPAN).header == f"00-{TRACE}-{SPAN}-01"
    assert Trace(TRACE, SPAN, is_sampled=False).header.endswith("-00")


@pytest.mark.req("GRAPH-31", error=True)
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE[:-1]}-{SPAN}-01",
    ],
)
def test_what_is_none_begins_another_trace(header: str | None) -> None:
    assert trace_of(header) is None


def test_ids_follow_from_their_seed() -> None:
    assert trace_id_from("job_1") == trace_id_from("job_1") != trace_id_from("job_2")
    assert is_trace_id(trace_id_from("job_1"))
    assert len(span_id_from("job_1")) == 16
    assert not is_trace_id("0" * 32)
    assert not is_trace_id(None)
