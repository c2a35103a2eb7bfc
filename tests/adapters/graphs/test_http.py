"""Graphs elsewhere: a signed call to a real application, and every way in which it can go wrong."""

import asyncio
import base64
import hashlib
import hmac
import json
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from duly.domain.errors import InvalidInput
from duly.domain.executions import GraphFailed, GraphResult
from duly.graphs.http import LARGEST_ANSWER_BYTES, HttpGraphs
from duly.system.clock import SystemClock
from tests.adapters.graphs.calls import call_of, run, told

SECRET = b"a secret of more than 24 bytes"
URL = "http://service/graphs/news"


def graphs_of(answer: Any, seen: list[tuple[dict[str, str], bytes]] | None = None) -> HttpGraphs:
    async def serve(request: Request) -> Response:
        if seen is not None:
            seen.append((dict(request.headers), await request.body()))
        return answer if isinstance(answer, Response) else Response(json.dumps(answer))

    application = Starlette(routes=[Route("/graphs/news", serve, methods=["POST"])])
    return HttpGraphs(SystemClock(), SECRET, httpx2.ASGITransport(application))


@pytest.mark.req("GRAPH-30")
def test_a_service_is_asked_once_signed_and_answers_events_usage_and_result() -> None:
    seen: list[tuple[dict[str, str], bytes]] = []
    answer = {
        "output": {"text": "news"},
        "events": [{"kind": "log", "data": {"line": "half"}}],
        "usage": [
            {"unit": "u1", "model": "gpt-4o", "input_tokens": 3, "output_tokens": 5},
            {"unit": "u2", "model": "gpt-4o"},
        ],
    }
    call = call_of("http:news", input={"topic": "ai"}, attempt=2)

    events, result = asyncio.run(run(graphs_of(answer, seen), URL, call))

    assert result == GraphResult(output={"text": "news"})
    assert [kind for kind, _ in told(events)] == ["usage", "unmetered", "log"]
    (headers, body), *others = seen
    assert not others
    assert json.loads(body)["input"] == {"topic": "ai"}
    assert headers["idempotency-key"] == "exe_1/2"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


async def _flood() -> Any:
    for _ in range(50):
        yield b"x" * 1_048_576


@pytest.mark.req("GRAPH-30", error=True)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (PlainTextResponse("no JSON"), "answered no JSON: 'no JSON'"),
        (Response("[" * 100_000), "answered no JSON"),
        (Response("[1]"), "answered no object"),
        (Response('{"output": 1, "events": [1]}'), "no list of objects"),
        (Response('{"usage": [{"unit": "u", "input_tokens": "many"}]}'), "no unit or no figures"),
        (PlainTextResponse("boom", 500), "answered 500: 'boom'"),
        (Response(status_code=307, headers={"location": "http://elsewhere/"}), "answered 307"),
        (StreamingResponse(_flood()), f"more than {LARGEST_ANSWER_BYTES} bytes"),
    ],
)
def test_an_answer_that_is_none_fails_the_run_and_says_why(answer: Response, says: str) -> None:
    with pytest.raises(GraphFailed, match="service") as failure:
        asyncio.run(run(graphs_of(answer), URL, call_of("http:news")))

    assert says in str(failure.value)


def test_a_service_that_is_not_there_fails_the_run() -> None:
    graphs = HttpGraphs(SystemClock(), SECRET)

    with pytest.raises(GraphFailed, match="could not be reached"):
        asyncio.run(run(graphs, "http://127.0.0.1:9/graphs", call_of("http:news")))


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too short"):
        HttpGraphs(SystemClock(), b"short")
