"""The job that has a graph executed: looks at the grant, asks the execution service, notes which run it was.

No graph is loaded here, and no model reached: the service is somewhere else, even if that is in this process.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import httpx2

from duly.application.grants import Grants
from duly.application.graph_jobs import Standing, standing_of, status_of
from duly.application.jobs import Jobs
from duly.application.runs import Runs
from duly.application.untraced import Untraced
from duly.domain.errors import DulyError, InvalidInput, Unavailable
from duly.domain.executions import ExecutionStatus
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Ending, Executed, FinishedJob, Job, JobStatus, Suspended
from duly.domain.payloads import json_of, value_of
from duly.domain.sessions import ClaimedJob
from duly.domain.texts import text_of
from duly.domain.traces import trace_id_from
from duly.ports.clock import Clock
from duly.ports.tracing import Tracing
from duly.worker.handlers import failure

MOST_LAUNCHES = 5
"""How often a call is repeated that the service did not answer; that it still runs is an answer."""

T = TypeVar("T")

_LONGEST_REASON = 2_000
_LONGEST_RETRY_S = 60
_CANCEL_WITHIN_S = 3.0
_ASKED = ("max_cost", "on_crash", "timeout_ms", "review_within_ms", "review_default", "review_value")
# A budget that says skip closes the slot, and so does a person who says no: neither is a failure of the run.
_CLOSED = {"over_budget": JobStatus.SKIPPED, "rejected": JobStatus.CANCELLED}


class Closes(Protocol):
    async def close(self) -> None: ...


class _Answer(NamedTuple):
    """`again_in` is when to ask again; without it, this is how it ended."""

    ending: Ending | Suspended | None = None
    again_in: Micros | None = None
    is_launch: bool = True
    outcome: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRuns:
    """Its params are `graph_id`, `grant_id` and `input`; `key`, if an operator put it. The grant is its owner's.

    Whoever dies in the middle is followed by another job under the same key, which has the same outcome.
    """

    clock: Clock
    jobs: Jobs
    grants: Grants
    runs: Runs
    client: httpx2.AsyncClient
    executions: Closes | None = None
    tracing: Tracing = field(default_factory=Untraced)

    async def __call__(self, job: ClaimedJob) -> Ending | Suspended:
        params: Any = value_of(job.payload)
        try:
            graph_id, grant_id = params["graph_id"], params["grant_id"]
        except KeyError as missing:
            return failure(f"its params name no {missing.args[0]}", retryable=False)
        standing = await self._insisting(lambda: standing_of(self.jobs.storage, job))
        try:
            await self._insisting(lambda: self.grants.validate(grant_id, graph_id=graph_id, owner=standing.owner))
        except DulyError as refusal:
            status = await self._insisting(lambda: status_of(self.jobs.storage, standing.key))
            if status is ExecutionStatus.WAITING:  # nobody else will go on with it
                await self._end(graph_id, standing.key)
            # What has happened stays true when a grant is revoked.
            if status is not ExecutionStatus.DONE:
                return failure(f"{refusal.code}: {refusal}", retryable=False)
        try:
            return await self._traced(job, graph_id, standing, params)
        except asyncio.CancelledError:
            await self._cancel(job, graph_id, grant_id, standing.key)
            raise

    async def _traced(
        self, job: ClaimedJob, graph_id: str, standing: Standing, params: Mapping[str, Any]
    ) -> Ending | Suspended:
        """All tries of a job are in one trace, which the first call under its key makes the execution's."""
        span = self.tracing.begin(
            f"run {graph_id}",
            trace_id=trace_id_from(job.chain),
            parent=None,
            seed=f"{job.id}/{job.token}",  # a job that waited for a review comes back as itself
            attributes={"duly.job_id": job.id, "duly.key": standing.key, "duly.graph_id": graph_id},
        )
        error: str | None = "interrupted"
        try:
            ended = await self._ended(job, graph_id, standing, params, span.trace.header)
            error = None if isinstance(ended, Suspended) else ended.error
        finally:
            span.end(error)
        return ended

    async def _ended(
        self, job: ClaimedJob, graph_id: str, standing: Standing, params: Mapping[str, Any], traceparent: str
    ) -> Ending | Suspended:
        launches, asked = 0, _body_of(standing, params)
        while True:
            answer = await self._ask(graph_id, standing.key, asked, traceparent)
            launches += answer.is_launch
            if isinstance(answer.ending, Suspended):
                await self._note(job, answer.outcome)
                return answer.ending
            if answer.ending is not None and (answer.again_in is None or launches >= MOST_LAUNCHES):
                return await self._explained(answer.ending, answer.outcome)
            await self.clock.sleep(answer.again_in or Micros(SECOND))

    async def _explained(self, ending: Ending, outcome: Mapping[str, Any] | None) -> Ending:
        """With what the execution says, so that the row of the ledger can be understood by itself."""
        if outcome is None or outcome.get("ok") is not False:
            return ending
        with suppress(DulyError):
            if said := await self.runs.execution_error(outcome["run_id"]):
                return replace(ending, error=f"{outcome.get('error_code')}: {said}"[:_LONGEST_REASON])
        return ending

    async def _cancel(self, job: ClaimedJob, graph_id: str, grant_id: str, key: str) -> None:
        """A run that is cancelled must spend nothing more, also if this comes before the call that it ends.

        A worker that only stops leaves its graph alone: the job that follows has the outcome.
        """
        with suppress(DulyError, TimeoutError):
            async with asyncio.timeout(_CANCEL_WITHIN_S):
                known = await self.jobs.get(job.id)
                if _is_cancelled(known):
                    await self._end(graph_id, key, grant_id=grant_id)

    async def _end(self, graph_id: str, key: str, *, grant_id: str | None = None) -> None:
        asked = {} if grant_id is None else {"execution_grant_id": grant_id}
        with suppress(httpx2.HTTPError):
            await self.client.delete(_path(graph_id), params=asked, headers={"Idempotency-Key": key})

    async def close(self) -> None:
        """With the service, if it is in this process."""
        if self.executions is not None:
            await self.executions.close()
        await self.client.aclose()

    async def _note(self, job: ClaimedJob, outcome: Mapping[str, Any] | None) -> None:
        """Of one that waits; with the others it is noted as they end."""
        if outcome is not None and job.ledger_run is not None:
            run, execution, trace_id = job.ledger_run, outcome["run_id"], outcome.get("trace_id")
            await self._insisting(lambda: self.runs.note_execution(run, execution=execution, trace_id=trace_id))

    async def _insisting(self, ask: Callable[[], Awaitable[T]]) -> T:
        """A store that is away for a while is no reason to fail: if it stays away, the claim is lost, and this ends."""
        while True:
            try:
                return await ask()
            except Unavailable:
                await self.clock.sleep(Micros(SECOND))

    async def _ask(self, graph_id: str, key: str, body: Mapping[str, Any], traceparent: str) -> _Answer:
        headers = {"Idempotency-Key": key, "traceparent": traceparent}
        try:
            response = await self.client.post(_path(graph_id), json=body, headers=headers)
            return _read(response)
        except (httpx2.HTTPError, InvalidInput) as error:
            why = f"the execution service could not be asked: {type(error).__name__}: {error}"
            return _Answer(failure(why), again_in=Micros(SECOND))


def _body_of(standing: Standing, params: Mapping[str, Any]) -> dict[str, Any]:
    body = {"execution_grant_id": params["grant_id"], "input": params.get("input") or {}}
    if standing.schedule_id is not None:
        body["schedule_id"] = standing.schedule_id
    return body | {name: params[name] for name in _ASKED if params.get(name) is not None}


def _is_cancelled(job: Job | FinishedJob) -> bool:
    return job.status is JobStatus.CANCELLED if isinstance(job, FinishedJob) else job.cancel_reason is not None


def _path(graph_id: str) -> str:
    return f"/api/internal/graphs/{quote(graph_id, safe=':@')}/runs"


def _read(response: httpx2.Response) -> _Answer:
    said = _object(response)
    if response.status_code == 200:
        return _Answer(_ending(said, response.headers.get("duly-cost")), outcome=said)
    if response.status_code == 202:
        return _Answer(Suspended(said["run_id"]), is_launch=False, outcome=said)
    detail = f"{said.get('code', response.status_code)}: {said.get('detail', 'no reason given')}"
    if response.status_code == 409:
        return _Answer(failure(detail), again_in=_retry_after(response), is_launch=False)
    if response.status_code >= 500 or response.status_code == 429:
        return _Answer(failure(f"the execution service failed: {detail}"), again_in=_retry_after(response))
    return _Answer(failure(detail, retryable=False))


def _ending(said: Mapping[str, Any], cost: str | None) -> Ending:
    executed = Executed(said["run_id"], said.get("trace_id"))
    kept = executed._asdict() | ({} if cost is None else {"cost": cost[:40]})
    if said.get("ok") is True:
        return Ending(status=JobStatus.COMPLETED, result=json_of(kept, field="result"), executed=executed)
    code = str(said.get("error_code"))[:200]
    why = f"{code}: execution {executed.run_id} says more"
    status = _CLOSED.get(code, JobStatus.FAILED)
    is_retryable = status is not JobStatus.FAILED
    return replace(failure(why, retryable=is_retryable), status=status, executed=executed)


def _object(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        said = json.loads(response.content)
    except ValueError:
        said = None
    said = said if isinstance(said, dict) else {}
    if response.status_code in (200, 202):
        text_of(said.get("run_id"), field="run_id")
        if said.get("trace_id") is not None:
            text_of(said["trace_id"], field="trace_id")
    return said


def _retry_after(response: httpx2.Response) -> Micros:
    given = response.headers.get("retry-after", "")
    seconds = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 1
    return Micros(min(max(seconds, 1), _LONGEST_RETRY_S) * SECOND)
