"""Workflows that an executor elsewhere runs: called once with document and meta, and waited for until a deadline."""

import json
from typing import Any

from duly.application.dag_runs import Asking, Begun, DagRuns
from duly.domain.executions import GraphFailed, GraphResult
from duly.domain.instants import SECOND, Instant
from duly.domain.payloads import value_of
from duly.domain.workflows import Elsewhere
from duly.graphs.insisting import insisting
from duly.ports.clock import Clock
from duly.ports.graphs import GraphCall


async def run_elsewhere(
    begun: Begun,
    executor: Elsewhere,
    call: GraphCall,
    asking: Asking,
    runs: DagRuns,
    *,
    clock: Clock,
    transport: Any = None,
) -> GraphResult:
    """An executor that has taken the run is not called again; until it has, it is, under the same key."""
    deadline = Instant(begun.run.begun_at + executor.deadline_ms * 1_000)
    is_accepted = await insisting(call, clock, lambda: runs.is_accepted(call.run_id))
    if not (executor.callback and is_accepted):
        call.check_lease()
        until = min(deadline, call.deadline)
        try:
            answered = await _asked(begun, executor, call, until, clock=clock, transport=transport)
        except GraphFailed:
            has_ended = executor.callback and await insisting(call, clock, lambda: runs.has_ended(call.run_id))
            if not has_ended:
                raise
            return GraphResult(called_back_by=deadline)  # it was told that its end was heard
        if not executor.callback:
            return GraphResult(output={"outputs": answered})
        await insisting(call, clock, lambda: runs.accept(asking))
    return GraphResult(called_back_by=deadline)  # what it has said already is seen as the run begins to wait


async def _asked(
    begun: Begun, executor: Elsewhere, call: GraphCall, until: Instant, *, clock: Clock, transport: Any
) -> Any:
    # An HTTP client takes a tenth of a second to load.
    from duly.graphs.http import fetched  # noqa: PLC0415

    asked = {
        "dag": value_of(begun.version.document),
        "meta": dict(begun.meta),
        "input": dict(call.input),
        "callback": {"method": "POST", "path": f"/run-launcher/callbacks/{call.run_id}"} if executor.callback else None,
    }
    status, read = await fetched(
        "POST",
        executor.url,
        headers={"content-type": "application/json", "idempotency-key": str(begun.meta["idempotency_key"])},
        content=json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode(),
        within_s=max((until - clock.now()) / SECOND, 0.001),
        transport=transport,
    )
    if not 200 <= status < 300:
        shown = repr(read[:200].decode("utf-8", "replace"))
        raise GraphFailed(f"the executor answered {status}: {shown}", error_code="executor_failed")
    try:
        return json.loads(read) if read else None
    except (ValueError, RecursionError):
        raise GraphFailed("the executor answered no JSON", error_code="executor_failed") from None
