"""The job that has a graph executed: what it makes of each answer of the execution service."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Ending, JobStatus, Suspended
from duly.system.clock import SystemClock
from duly.worker.graph_runs import MOST_LAUNCHES, GraphRuns
from tests.adapters.worker.working import claimed

pytestmark = pytest.mark.store("sqlite")
DONE: tuple[int, Any, Any] = (200, {"ok": True, "run_id": "exe_1", "trace_id": "t1", "error_code": None}, {})


class Impatient(SystemClock):
    """Remembers how long somebody wanted to sleep, and lets nobody."""

    __slots__ = ("slept",)

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, duration: Micros) -> None:
        self.slept.append(duration / SECOND)
        await asyncio.sleep(0)


class Asked:
    """A service whose answers are given, the last for ever."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, said, headers = answer
        return httpx2.Response(status, content=said if isinstance(said, bytes) else json.dumps(said), headers=headers)


def ending_after(answers: Sequence[Any], **params: Any) -> tuple[Any, Asked, Impatient]:
    asked, clock = Asked(answers), Impatient()

    async def scenario() -> Ending | Suspended:
        queue = await Queue.open(Settings(database_url=":memory:"))
        account = await queue.accounts.create(owner="ann", name="main")
        grant = await queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:python:g"])
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(asked), base_url="http://service")
        runs = GraphRuns(clock=clock, jobs=queue.jobs, grants=queue.grants, runs=queue.runs, client=client)
        given = {"graph_id": "python:g", "grant_id": grant.id, "input": {"a": 1}, **params}
        try:
            return await runs(claimed(key="g:2026-01-01T00:00:00Z", **given))
        finally:
            await runs.close()
            await queue.close()

    return asyncio.run(scenario()), asked, clock


@pytest.mark.req("GRAPH-16")
def test_the_slots_key_goes_with_the_call_and_the_outcome_is_the_result() -> None:
    ending, asked, _ = ending_after([DONE], max_cost="0.50", on_crash="ask")

    assert (ending.status, json.loads(ending.result or "")) == (
        JobStatus.COMPLETED,
        {"run_id": "exe_1", "trace_id": "t1"},
    )
    (request,) = asked.requests
    assert request.url.path == "/api/internal/graphs/python:g/runs"
    assert request.headers["idempotency-key"] == "g:2026-01-01T00:00:00Z"
    body = json.loads(request.content)
    assert (body["input"], body["max_cost"], body["on_crash"]) == ({"a": 1}, "0.50", "ask")


@pytest.mark.req("GRAPH-18")
def test_one_that_still_runs_is_asked_for_again_and_uses_up_nothing() -> None:
    running = (409, {"code": "request_in_progress", "detail": "…"}, {"Retry-After": "3"})

    ending, asked, clock = ending_after([running] * 20 + [DONE])

    assert ending.status is JobStatus.COMPLETED
    assert clock.slept == [3.0] * 20
    assert len({request.headers["idempotency-key"] for request in asked.requests}) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        (503, {"code": "unavailable", "detail": "no store"}, {}),
        (500, b"no JSON", {}),
        (200, {"ok": True}, {}),
        httpx2.ConnectError("nobody there"),
        httpx2.ReadTimeout("nothing heard"),
    ],
)
def test_a_call_that_was_not_answered_is_repeated_and_given_up_at_last(trouble: Any) -> None:
    repeated, _, _ = ending_after([trouble, trouble, DONE])
    ending, asked, _ = ending_after([trouble])

    assert repeated.status is JobStatus.COMPLETED
    assert (ending.status, ending.retryable, len(asked.requests)) == (JobStatus.FAILED, True, MOST_LAUNCHES)


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "bad"), (401, "unauthenticated"), (403, "grant_scope"), (404, "unknown"), (422, "x")],
)
def test_a_refusal_is_final_and_says_why(status: int, code: str) -> None:
    ending, asked, _ = ending_after([(status, {"code": code, "detail": "because"}, {})])

    assert (ending.status, ending.error, ending.retryable) == (JobStatus.FAILED, f"{code}: because", False)
    assert len(asked.requests) == 1


@pytest.mark.req("GRAPH-29")
def test_one_that_waits_for_a_review_is_left_alone() -> None:
    waiting: tuple[int, Any, Any] = (202, {"ok": None, "run_id": "exe_1", "trace_id": None, "error_code": None}, {})

    ending, asked, clock = ending_after([waiting])

    assert ending == Suspended("exe_1")
    assert (len(asked.requests), clock.slept) == (1, [])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("graph_error", JobStatus.FAILED),
        ("over_budget", JobStatus.SKIPPED),
        ("rejected", JobStatus.CANCELLED),
        ("undecided", JobStatus.FAILED),
    ],
)
def test_an_outcome_that_is_an_error_ends_the_run_and_a_budget_skips_it(code: str, status: JobStatus) -> None:
    said = {"ok": False, "run_id": "exe_1", "trace_id": None, "error_code": code}

    ending, _, _ = ending_after([(200, said, {})])

    assert (ending.status, str(ending.error).partition(":")[0]) == (status, code)
    assert status is not JobStatus.FAILED or not ending.retryable


@pytest.mark.req("GRAPH-04", error=True)
@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"grant_id": "grant_nowhere"}, "unknown_grant: there is no grant"),
        ({"graph_id": "python:other"}, "grant_scope: grant"),
        ({"grant_id": 5}, "invalid_input: grant_id"),
    ],
)
def test_a_grant_that_is_no_good_is_refused_before_anything_is_asked(params: dict[str, Any], says: str) -> None:
    ending, asked, _ = ending_after([DONE], **params)

    assert (ending.status, ending.retryable, asked.requests) == (JobStatus.FAILED, False, [])
    assert str(ending.error).startswith(says)
