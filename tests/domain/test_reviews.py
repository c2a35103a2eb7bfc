"""What may be decided, what it comes to, and what is asked."""

from dataclasses import replace
from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.executions import Execution, ExecutionRequest, ExecutionStatus, Silence
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.payloads import json_of, value_of
from duly.domain.reviews import (
    MOST_QUESTIONS,
    WITHIN_MS,
    Decision,
    DeliveryReplayed,
    Question,
    Review,
    ReviewKind,
    ReviewState,
    Verdict,
    end_by,
    opened,
    questions_of,
    reply_of,
    why_unaskable,
)

NOW = Instant(1_800_000_000 * SECOND)


def execution(output: Any, **asked: Any) -> Execution:
    request = ExecutionRequest(key="k", graph_id="python:g", grant_id="grant_1", input={}, **asked)
    return Execution(
        key="k",
        request_hash=request.hash,
        request=request.written,
        graph_id="python:g",
        grant_id="grant_1",
        run_id="exe_1",
        trace_id="t",
        status=ExecutionStatus.WAITING,
        result=json_of(output, field="result"),
        token=1,
        era="e",
        expires_at=Micros(1),
        created_at=NOW,
    )


def review(kind: ReviewKind = ReviewKind.GRAPH, output: Any = "?", **asked: Any) -> Review:
    return opened(execution(output, **asked), kind, Owner("ann"), ["review_1"], NOW)[0]


def interrupts(*named: tuple[str, Any]) -> Any:
    return {"interrupts": [{"id": name, "value": value} for name, value in named]}


@pytest.mark.req("GRAPH-29")
def test_each_interrupt_is_a_question_and_any_other_output_is_one() -> None:
    assert questions_of(json_of(interrupts(("a", 1), ("b", "x")), field="r")) == [
        Question("a", json_of(1, field="q")),
        Question("b", json_of("x", field="q")),
    ]
    outputs: list[Any] = [{"interrupts": []}, {"interrupts": [{"value": 1}]}, "?", None, [1]]
    for output in outputs:
        assert questions_of(json_of(output, field="r")) == [Question("", json_of(output, field="q"))]


def test_a_question_may_wait_for_a_week_and_is_rejected_then_unless_told_otherwise() -> None:
    usual, special = review(), review(review_within_ms=5, review_default=Silence.EDIT, review_value=[1])

    assert (usual.deadline, usual.default) == (NOW + WITHIN_MS * 1_000, Silence.REJECT)
    assert (special.deadline, special.default, special.default_value) == (NOW + 5_000, Silence.EDIT, "[1]")


@pytest.mark.parametrize("kind", [ReviewKind.BUDGET, ReviewKind.CRASH])
@pytest.mark.parametrize("default", [Silence.APPROVE, Silence.FAIL])
def test_nobodys_silence_spends_what_nobody_allowed(kind: ReviewKind, default: Silence) -> None:
    asked = review(kind, review_default=default)

    assert asked.default is (Silence.FAIL if default is Silence.FAIL else Silence.REJECT)


@pytest.mark.req("GRAPH-29", error=True)
@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "approve"},
        {"verdict": Verdict.EDIT},
        {"verdict": Verdict.APPROVE, "value": 1},
        {"verdict": Verdict.REJECT, "note": "x" * 1_001},
        {"verdict": Verdict.EDIT, "value": {1}},
        {"verdict": Verdict.EDIT, "value": "x" * 65_536},
    ],
)
def test_a_decision_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Decision(**{"by": "ann", **wrong})


@pytest.mark.parametrize(
    ("given", "is_right"),
    [
        ({"review_default": Silence.EDIT}, False),
        ({"review_value": 1}, False),
        ({"review_within_ms": 0}, False),
        ({}, True),
    ],
)
def test_terms_that_mean_nothing_are_refused(given: dict[str, Any], is_right: bool) -> None:
    if is_right:
        assert "review" not in execution("?").request
        return
    with pytest.raises(InvalidInput):
        execution("?", **given)


def test_the_answers_of_a_run_are_the_newest_to_each_question() -> None:
    asked = review(output=interrupts(("a", 1)))
    first = replace(asked, state=ReviewState.EDITED, value=json_of("old", field="v"))
    second = replace(asked, attempt=2, state=ReviewState.EDITED, value=json_of("new", field="v"))
    other = replace(asked, question_id="b", state=ReviewState.APPROVED)
    expired = replace(
        asked, question_id="c", state=ReviewState.EXPIRED, default=Silence.EDIT, value=json_of(0, field="v")
    )
    budget = replace(asked, kind=ReviewKind.BUDGET, question_id="", state=ReviewState.APPROVED)
    withdrawn = replace(asked, question_id="d", state=ReviewState.WITHDRAWN)

    reply = value_of(reply_of([first, second, other, expired, budget, withdrawn]))

    assert reply == {"answers": {"a": "new", "b": True, "c": 0}}


@pytest.mark.parametrize(
    ("kind", "state", "default", "code"),
    [
        (ReviewKind.GRAPH, ReviewState.APPROVED, Silence.REJECT, None),
        (ReviewKind.GRAPH, ReviewState.REJECTED, Silence.APPROVE, "rejected"),
        (ReviewKind.BUDGET, ReviewState.REJECTED, Silence.FAIL, "over_budget"),
        (ReviewKind.CRASH, ReviewState.REJECTED, Silence.FAIL, "rejected"),
        (ReviewKind.GRAPH, ReviewState.EXPIRED, Silence.APPROVE, None),
        (ReviewKind.GRAPH, ReviewState.EXPIRED, Silence.REJECT, "rejected"),
        (ReviewKind.GRAPH, ReviewState.EXPIRED, Silence.FAIL, "undecided"),
        (ReviewKind.BUDGET, ReviewState.EXPIRED, Silence.REJECT, "over_budget"),
    ],
)
def test_what_a_decision_comes_to(kind: ReviewKind, state: ReviewState, default: Silence, code: str | None) -> None:
    end = end_by(replace(review(kind), state=state, default=default, decided_by="ann", decided_at=NOW, note="so"))

    assert (None if end is None else end[0]) == code


@pytest.mark.req("GRAPH-29", error=True)
def test_too_many_questions_and_too_large_ones_are_not_asked() -> None:
    many = interrupts(*((str(number), 1) for number in range(MOST_QUESTIONS + 1)))
    large = interrupts(("a", "x" * 65_535))

    assert "101 questions at once" in str(why_unaskable(json_of(many, field="r")))
    assert "65536 bytes" in str(why_unaskable(json_of(large, field="r")))
    assert why_unaskable(json_of(interrupts(("a", "x" * 65_534)), field="r")) is None


def test_a_review_says_what_is_waited_for_in_words() -> None:
    said = review(review_within_ms=60_000, review_default=Silence.FAIL).waiting_in_words

    assert said == "It waits for review review_1 until 2027-01-15T08:01:00Z; then the run fails."


@pytest.mark.req("GRAPH-29", error=True)
@pytest.mark.parametrize(("review_id", "other"), [("review_1", "review review_1"), (None, "another review")])
def test_a_replayed_delivery_is_named_with_what_it_decided_and_what_to_do(review_id: str | None, other: str) -> None:
    said = str(DeliveryReplayed("plane", "d1", review_id))

    assert f"delivery 'd1' from plane has decided {other}" in said
    assert "an id of its own" in said
