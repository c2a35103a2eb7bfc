"""Executions, in JSON: what the execution service is asked, and what it answers."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.domain.amounts import parse_amount
from duly.domain.executions import TIMEOUT_MS, EventKind, Execution, ExecutionEvent, ExecutionRequest, OnCrash, Silence
from duly.domain.instants import moment_of
from duly.domain.payloads import value_of
from duly.wire.moments import Moment
from duly.wire.shapes import Shape


class NewExecution(Shape):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"execution_grant_id": "grant_0190", "input": {"topic": "ai"}}]}
    )

    execution_grant_id: str
    input: dict[str, Any]
    max_cost: Annotated[str | None, Field(description="Held before it runs, such as 0.50.")] = None
    on_crash: Annotated[OnCrash, Field(strict=False)] = OnCrash.RESUME
    timeout_ms: int = TIMEOUT_MS
    schedule_id: Annotated[str | None, Field(description="Whose budgets count it.")] = None
    review_within_ms: Annotated[int | None, Field(description="How long its questions may wait.")] = None
    review_default: Annotated[
        Silence | None, Field(strict=False, description="What counts if nobody decides in time.")
    ] = None
    review_value: Annotated[Any, Field(description="What it then goes on with, if that is `edit`.")] = None


class Outcome(Shape):
    """`ok` is null while it waits for somebody's reply."""

    ok: bool | None
    run_id: str
    trace_id: str | None
    error_code: str | None


class GraphEvent(Shape):
    """One thing that a graph told; `seq` counts through all attempts at its execution."""

    seq: int
    attempt: Annotated[int, Field(description="Which attempt at the execution told it.")]
    at: Moment
    kind: EventKind
    data: dict[str, Any]


def event_shape(event: ExecutionEvent) -> GraphEvent:
    return GraphEvent.model_construct(
        seq=event.seq, attempt=event.attempt, at=moment_of(event.at), kind=event.kind, data=value_of(event.data)
    )


def request_from(key: str, graph_id: str, body: NewExecution) -> ExecutionRequest:
    return ExecutionRequest(
        key=key,
        graph_id=graph_id,
        grant_id=body.execution_grant_id,
        input=body.input,
        max_cost=None if body.max_cost is None else parse_amount(body.max_cost, field="max_cost"),
        on_crash=body.on_crash,
        timeout_ms=body.timeout_ms,
        schedule_id=body.schedule_id,
        review_within_ms=body.review_within_ms,
        review_default=body.review_default,
        review_value=body.review_value,
    )


def outcome_shape(execution: Execution) -> Outcome:
    return Outcome(
        ok=execution.ok,
        run_id=execution.run_id,
        trace_id=execution.trace_id,
        error_code=execution.error_code,
    )
