"""Reviews, in JSON: what is asked, and what is decided."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.domain.executions import Silence
from duly.domain.instants import moment_of
from duly.domain.payloads import value_of
from duly.domain.reviews import Decision as DomainDecision
from duly.domain.reviews import Review as DomainReview
from duly.domain.reviews import ReviewKind, ReviewState, Verdict
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape


class Review(Shape):
    id: str
    run_id: Annotated[str, Field(description="The execution that waits.")]
    owner: str
    graph_id: str
    kind: ReviewKind
    state: ReviewState
    question: Annotated[Any, Field(description="What the graph asked.")]
    created_at: Moment
    deadline: Moment
    default: Annotated[Silence, Field(description="What counts if nobody decides until then.")]
    default_value: Any
    value: Annotated[Any, Field(description="What it went on with, if it was edited.")]
    note: str
    decided_by: str | None
    decided_at: Moment | None


class Decision(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"decision": "approve", "note": "looks right"}]})

    decision: Annotated[Verdict, Field(strict=False)]
    value: Annotated[Any, Field(description="What the graph goes on with; for `edit` alone.")] = None
    note: str = ""

    def by(self, whom: str, *, key: str | None) -> DomainDecision:
        return DomainDecision(verdict=self.decision, value=self.value, note=self.note, by=whom, key=key)


def review_shape(review: DomainReview) -> Review:
    return Review(
        id=review.id,
        run_id=review.run_id,
        owner=review.owner,
        graph_id=review.graph_id,
        kind=review.kind,
        state=review.state,
        question=value_of(review.question),
        created_at=moment_of(review.created_at),
        deadline=moment_of(review.deadline),
        default=review.default,
        default_value=None if review.default_value is None else value_of(review.default_value),
        value=None if review.value is None else value_of(review.value),
        note=review.note,
        decided_by=review.decided_by,
        decided_at=moment_or_none(review.decided_at),
    )
