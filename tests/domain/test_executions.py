"""What makes two requests the same, and what is none."""

from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.executions import (
    ErrorCode,
    Execution,
    ExecutionRequest,
    ExecutionStatus,
    GraphResult,
    OnCrash,
    ended_with,
    failed,
    request_of,
)
from duly.domain.instants import SECOND, Instant, Micros


def asked(**given: Any) -> ExecutionRequest:
    defaults: dict[str, Any] = {"key": "k", "graph_id": "python:g", "grant_id": "grant_1", "input": {"a": 1, "b": [2]}}
    return ExecutionRequest(**{**defaults, **given})


@pytest.mark.req("GRAPH-18")
def test_names_in_another_order_ask_for_the_same() -> None:
    assert asked(input={"b": [2], "a": 1}).hash == asked().hash
    assert len(asked().hash) == 64


@pytest.mark.req("GRAPH-18", error=True)
@pytest.mark.parametrize(
    "other",
    [
        {"graph_id": "python:g@2"},
        {"grant_id": "grant_2"},
        {"input": {"a": 1, "b": [2, 2]}},
        {"input": {"a": 1.5, "b": [2]}},
        {"max_cost": 0},
        {"on_crash": OnCrash.ASK},
        {"timeout_ms": 1},
        {"schedule_id": "s"},
    ],
)
def test_whatever_differs_asks_for_something_else(other: dict[str, Any]) -> None:
    assert asked(**other).hash != asked().hash


def test_a_request_is_read_as_it_was_written() -> None:
    request = asked(max_cost=5, on_crash=OnCrash.RERUN, input={"text": "ünï\n"})

    assert request_of("k", request.written) == request


@pytest.mark.req("GRAPH-30")
def test_messages_and_model_have_defaults() -> None:
    assert (asked().messages, asked().model) == ([], "default")
    assert asked(input={"messages": [1], "model": "gpt"}).model == "gpt"


@pytest.mark.req("GRAPH-30", error=True)
@pytest.mark.parametrize(
    "wrong",
    [
        {"key": ""},
        {"key": "with space"},
        {"key": "x" * 256},
        {"graph_id": "nothing"},
        {"graph_id": "python:a/b"},
        {"graph_id": "python:g@"},
        {"grant_id": ""},
        {"input": {"a": {1}}},
        {"input": {"messages": "no list"}},
        {"input": {"model": 5}},
        {"max_cost": -1},
        {"timeout_ms": 0},
    ],
)
def test_what_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        asked(**wrong)


@pytest.mark.req("GRAPH-13")
@pytest.mark.parametrize(
    ("passed", "era", "left"), [(0, "e", 40), (30, "e", 10), (40, "e", 0), (99, "e", 0), (0, "f", 0)]
)
def test_a_key_is_free_once_lease_and_grace_have_passed_or_the_era_has(passed: int, era: str, left: int) -> None:
    execution = Execution(
        key="k",
        request_hash="h",
        request=asked().written,
        graph_id="python:g",
        grant_id="grant_1",
        run_id="exe_1",
        trace_id="t",
        status=ExecutionStatus.RUNNING,
        token=1,
        era="e",
        expires_at=Micros(30 * SECOND),
        created_at=Instant(0),
    )

    assert execution.frees_in(era=era, lease_now=Micros(passed * SECOND), grace=Micros(10 * SECOND)) == left * SECOND


def test_a_result_ends_it_a_question_does_not_and_what_is_no_json_fails() -> None:
    assert ended_with(GraphResult(output=[1])).ok is True
    assert ended_with(GraphResult(output=[1], waits=True)).ok is None
    assert ended_with(GraphResult(output={1})).error_code == ErrorCode.RESULT


def test_an_error_is_bounded_and_storable() -> None:
    message = failed("x", "a\0b\ud800" + "c" * 9_999).error_message

    assert message is not None
    assert len(message) == 2_000
    assert "\0" not in message
    message.encode()


@pytest.mark.parametrize("code", ["", "No Code", "x" * 65, "a\0b"])
def test_a_code_that_is_none_is_the_graphs_error(code: str) -> None:
    assert failed(code, "why").error_code == ErrorCode.GRAPH
    assert failed("model_gone", "why").error_code == "model_gone"
