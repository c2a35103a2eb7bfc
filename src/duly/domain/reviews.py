"""A review: what is asked of a person, until when, and what was decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.executions import ErrorCode, Execution, Silence, request_of
from duly.domain.ids import JobId, Owner
from duly.domain.instants import SECOND, Instant, Micros, written
from duly.domain.payloads import Payload, json_of, value_of
from duly.domain.texts import storable_of

WITHIN_MS = 7 * 86_400_000
LARGEST_QUESTION = 65_536
LARGEST_VALUE = 65_536
LONGEST_NOTE = 1_000
MOST_QUESTIONS = 100
BACKSTOP = Micros(60 * SECOND)
"""So long after its deadline a run that waits looks for itself."""

NOBODY = "nobody, in time"


class ReviewKind(StrEnum):
    GRAPH = "graph"  # the graph asked
    CRASH = "crash"  # its service died, and whoever called it wants to be asked
    BUDGET = "budget"  # it would go beyond a budget that says to ask


class ReviewState(StrEnum):
    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EDITED = "edited"
    EXPIRED = "expired"  # nobody decided in time: its default counts
    WITHDRAWN = "withdrawn"  # its run ended before anybody decided


class Verdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    EDIT = "edit"


_STATES = {
    Verdict.APPROVE: ReviewState.APPROVED,
    Verdict.REJECT: ReviewState.REJECTED,
    Verdict.EDIT: ReviewState.EDITED,
}


class Question(NamedTuple):
    """`id` is the graph's own name for it, empty if it asks one thing at a time."""

    id: str
    asked: Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody decided. `key` names it: the same decision under the same key may be told again."""

    verdict: Verdict
    value: Any = None
    note: str = ""
    by: str
    key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.verdict, Verdict):
            raise InvalidInput("decision", f"{ascii(self.verdict)[:40]} is none", fix="use approve, reject or edit")
        storable_of(self.note, field="note", longest=LONGEST_NOTE)
        if self.verdict is Verdict.EDIT and self.value is None:
            raise InvalidInput("value", "is missing", fix="give the value to go on with")
        if self.verdict is not Verdict.EDIT and self.value is not None:
            raise InvalidInput("value", f"is nothing to {self.verdict} with", fix="leave it out, or edit")
        value_text(self.value, field="value")

    @property
    def state(self) -> ReviewState:
        return _STATES[self.verdict]

    @property
    def answer(self) -> Any:
        """What the graph goes on with."""
        return self.value if self.verdict is Verdict.EDIT else True


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """`run_id` is the execution that waits, `job_id` the job that goes on with it when the last question is decided."""

    id: str
    run_id: str
    attempt: int
    owner: Owner
    graph_id: str
    kind: ReviewKind
    question_id: str
    question: Payload
    created_at: Instant
    deadline: Instant
    default: Silence
    default_value: Payload | None = None
    state: ReviewState = ReviewState.OPEN
    value: Payload | None = None
    note: str = ""
    decided_by: str | None = None
    decided_at: Instant | None = None
    decision_key: str | None = None
    job_id: JobId | None = None

    @property
    def is_open(self) -> bool:
        return self.state is ReviewState.OPEN

    @property
    def default_in_words(self) -> str:
        return {
            Silence.APPROVE: "it is approved",
            Silence.REJECT: "it is rejected",
            Silence.EDIT: f"it goes on with {self.default_value}",
            Silence.FAIL: "the run fails",
        }[self.default]

    @property
    def waiting_in_words(self) -> str:
        return f"It waits for review {self.id} until {written(self.deadline)}; then {self.default_in_words}."

    def require_takes(self, decision: Decision) -> None:
        if decision.verdict is Verdict.EDIT and self.kind is not ReviewKind.GRAPH:
            raise InvalidInput("decision", f"a review of a {self.kind} has nothing to edit", fix="approve or reject")

    def is_told_again(self, decision: Decision) -> bool:
        """Whether this very decision stands already."""
        told = (decision.state, value_text(decision.value, field="value"), decision.note, decision.key)
        return decision.key is not None and told == (self.state, self.value, self.note, self.decision_key)

    @property
    def verdict(self) -> Silence | None:
        """What counts, once it is decided."""
        if self.state is ReviewState.EXPIRED:
            return self.default
        return next((Silence(verdict.value) for verdict, state in _STATES.items() if state is self.state), None)

    @property
    def answer(self) -> Any:
        """What the graph goes on with; of a decided one."""
        return value_of(self.value) if self.verdict is Silence.EDIT and self.value is not None else True


def value_text(value: Any, *, field: str) -> Payload | None:
    if value is None:
        return None
    text = json_of(value, field=field)
    if len(text.encode()) > LARGEST_VALUE:
        raise InvalidInput(field, f"is more than {LARGEST_VALUE} bytes as JSON", fix="pass a reference instead")
    return text


def questions_of(result: Payload | None) -> list[Question]:
    """What a waiting execution asks: each of its interrupts, or its output as a whole."""
    asked = value_of(result) if result is not None else None
    interrupts = asked.get("interrupts") if isinstance(asked, dict) else None
    if not isinstance(interrupts, list) or not interrupts or not all(map(_is_interrupt, interrupts)):
        return [Question("", json_of(asked, field="question"))]
    # By id: what is asked twice under one id has one answer.
    found = {each["id"]: json_of(each.get("value"), field="question") for each in interrupts}
    return [Question(name, text) for name, text in found.items()]


def opened(execution: Execution, kind: ReviewKind, owner: Owner, ids: Sequence[str], now: Instant) -> list[Review]:
    """One for each question of an execution that begins to wait; `ids` are drawn, as many as there are questions."""
    request = request_of(execution.key, execution.request)
    within = request.review_within_ms or WITHIN_MS
    default = request.review_default or Silence.REJECT
    if kind is not ReviewKind.GRAPH and default in (Silence.APPROVE, Silence.EDIT):
        default = Silence.REJECT  # nobody's silence spends money that nobody allowed
    return [
        Review(
            id=review_id,
            run_id=execution.run_id,
            attempt=execution.attempt,
            owner=owner,
            graph_id=execution.graph_id,
            kind=kind,
            question_id=question.id,
            question=question.asked,
            created_at=now,
            deadline=Instant(now + within * 1_000),
            default=default,
            default_value=value_text(request.review_value, field="review_value") if default is Silence.EDIT else None,
        )
        for review_id, question in zip(ids, questions_of(execution.result), strict=False)
    ]


def why_unaskable(result: Payload | None) -> str | None:
    """What is wrong with the questions of a graph that wants to wait, if anything."""
    questions = questions_of(result)
    if len(questions) > MOST_QUESTIONS:
        return f"the graph asks {len(questions)} questions at once; {MOST_QUESTIONS} are the most"
    if any(len(each.asked.encode()) > LARGEST_QUESTION for each in questions):
        return f"the graph asks a question of more than {LARGEST_QUESTION} bytes as JSON"
    return None


def reply_of(reviews: Sequence[Review]) -> Payload:
    """The answers to a run's questions, the newest of each, from its reviews in order."""
    answers = {
        each.question_id: each.answer
        for each in reviews
        if each.kind is ReviewKind.GRAPH and each.verdict in (Silence.APPROVE, Silence.EDIT)
    }
    return json_of({"answers": answers}, field="reply")


def end_by(review: Review) -> tuple[str, str] | None:
    """The error an execution ends with by this decision, as code and message; None if it may go on."""
    said = f": {review.note}" if review.note else ""
    if review.verdict is Silence.FAIL:
        return ErrorCode.UNDECIDED, f"review {review.id} was decided by nobody until {written(review.deadline)}"
    if review.verdict is not Silence.REJECT:
        return None
    why = f"review {review.id} was rejected by {review.decided_by}{said}"
    return ("over_budget" if review.kind is ReviewKind.BUDGET else ErrorCode.REJECTED), why


def _is_interrupt(each: object) -> bool:
    return isinstance(each, Mapping) and isinstance(each.get("id"), str)


class UnknownReview(NotFound):
    code = "unknown_review"

    def __init__(self, review_id: str) -> None:
        super().__init__(f"there is no review {review_id!r}")
        self.review_id = review_id


class AlreadyDecided(Conflict):
    """The first decision stands."""

    code = "review_already_decided"

    def __init__(self, review: Review) -> None:
        when = "" if review.decided_at is None else f" at {written(review.decided_at)}"
        super().__init__(f"review {review.id} was {review.state} by {review.decided_by}{when}, and that stands")
        self.review = review


class DeliveryReplayed(Conflict):
    """A delivery's id was used before, for another review; nothing was decided by it now."""

    code = "delivery_replayed"

    def __init__(self, source: str, delivery_id: str, review_id: str | None) -> None:
        other = "another review" if review_id is None else f"review {review_id}"
        super().__init__(
            f"delivery {delivery_id!r} from {source} has decided {other}, and decides no second one;"
            " send each decision under an id of its own"
        )
        self.delivery_id = delivery_id
        self.review_id = review_id
