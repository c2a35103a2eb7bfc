"""What nodes do: functions given their inputs by name, and servers that are asked once and bounded."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from duly.domain.dags import HttpCall, nodes_of
from duly.domain.errors import InvalidInput
from duly.domain.executions import GraphFailed
from duly.domain.instants import SECOND, Instant
from duly.graphs.actions import ActionFailed, called, requested, usage_told
from duly.graphs.http import LARGEST_ANSWER_BYTES
from duly.graphs.registry import Registry
from duly.system.clock import SystemClock
from tests.adapters.graphs.calls import call_of

CLOCK = SystemClock()


def ask(answer: Any, http: HttpCall, inputs: dict[str, Any], seen: list[Request] | None = None) -> dict[str, Any]:
    async def serve(request: Request) -> Response:
        await request.body()
        if seen is not None:
            seen.append(request)
        return answer if isinstance(answer, Response) else Response(json.dumps(answer))

    app = Starlette(routes=[Route("/x", serve, methods=["GET", "POST", "DELETE"])])
    until = Instant(CLOCK.now() + 30 * SECOND)
    asked = requested(http, inputs, key="exe_1/a", until=until, clock=CLOCK, client=httpx2.ASGITransport(app))
    return asyncio.run(asked)


def test_inputs_are_the_body_and_every_try_has_the_same_key() -> None:
    seen: list[Request] = []

    answer = ask({"ok": 1}, HttpCall("POST", "http://s/x", {"X-Team": "news"}), {"topic": "meer"}, seen)

    assert answer == {"status": 200, "body": {"ok": 1}}
    (request,) = seen
    assert json.loads(asyncio.run(request.body())) == {"topic": "meer"}
    assert (request.headers["idempotency-key"], request.headers["x-team"]) == ("exe_1/a", "news")


def test_what_has_no_body_has_its_inputs_in_the_query() -> None:
    seen: list[Request] = []

    answer = ask(PlainTextResponse("plain"), HttpCall("GET", "http://s/x"), {"q": "a b", "n": 3, "y": True}, seen)

    assert answer == {"status": 200, "body": "plain"}
    assert dict(seen[0].query_params) == {"q": "a b", "n": "3", "y": "true"}
    with pytest.raises(InvalidInput, match=r"inputs\.q: is no text for a query"):
        ask({}, HttpCall("GET", "http://s/x"), {"q": [1]})


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (PlainTextResponse("no", 404), False),
        (PlainTextResponse("busy", 429), True),
        (PlainTextResponse("broken", 503), True),
        (RedirectResponse("http://elsewhere/x"), False),
    ],
)
def test_a_refusal_says_whether_trying_again_could_help_and_redirects_are_not_followed(
    answer: Response, again: bool
) -> None:
    with pytest.raises(ActionFailed, match=f"answered {answer.status_code}") as refused:
        ask(answer, HttpCall("POST", "http://s/x"), {})

    assert refused.value.again is again


def test_an_answer_without_end_is_refused() -> None:
    with pytest.raises(GraphFailed, match="more than"):
        ask(PlainTextResponse("x" * (LARGEST_ANSWER_BYTES + 1)), HttpCall("POST", "http://s/x"), {})


def test_usage_is_heard_where_it_is_said_as_graphs_say_it() -> None:
    said = {"usage": [{"unit": "u", "model": "gpt-4o", "input_tokens": 3, "output_tokens": 5}, {"n": 1}]}

    (event,) = usage_told(said)
    assert event.model_call is not None
    assert (event.model_call.unit, event.model_call.input_tokens) == ("u", 3)
    assert usage_told({"usage": {"total_tokens": 9}}) == usage_told("text") == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda topic: topic, "ai"),
        (lambda inputs: inputs, {"topic": "ai"}),
        (lambda call, topic, **more: (call.run_id, topic, more), ("run", "ai", {})),
        (lambda tell, topic: (callable(tell), topic), (True, "ai")),
    ],
)
def test_a_function_is_given_what_its_parameters_name(function: Any, expected: Any) -> None:
    assert _call(function, {"topic": "ai"}) == expected


def test_inputs_that_a_function_does_not_take_are_not_tried_again() -> None:
    with pytest.raises(ActionFailed, match="does not take these inputs: got an unexpected keyword") as refused:
        _call(lambda topic: topic, {"topic": "ai", "colour": "red"})
    assert not refused.value.again
    with pytest.raises(GraphFailed, match="no action 'other'"):
        _call(lambda: 1, {}, name="other")


def _call(function: Any, inputs: dict[str, Any], name: str = "work") -> Any:
    registry = Registry()
    registry.add_action("work", function)
    (node,) = nodes_of([{"id": "a", "action": name}])
    call = call_of("dag:news", run_id="run")
    return asyncio.run(called(node, inputs, call, registry, lambda _: None))
