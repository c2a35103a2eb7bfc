"""One trace from worker through execution service to graph: recorded where OpenTelemetry is, kept everywhere."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from duly.application.untraced import Untraced
from duly.bootstrap import Registry
from duly.bootstrap import graphs as wiring
from duly.domain.traces import trace_id_from, trace_of
from duly.system.tracing import OtelTracing, provider_named
from tests.http.site import Site
from tests.http.test_executions import PATH, Service, news

URL = "https://traces.example/trace/{trace_id}"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), provider_named("duly")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(wiring, "_tracing", lambda: OtelTracing(provider))
    yield exporter
    provider.shutdown()


async def _ran(site: Site, graph: Any) -> dict[str, Any]:
    registry = Registry()
    registry.add("python:traced", graph)
    account = await site.queue.accounts.create(owner="ann", name="main")
    grant = await site.queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
    ann = await site.caller("ann")
    given = {"graph_id": "python:traced", "grant_id": grant.id, "input": {}}
    await site.schedule(ann, id="traced", target="graph.run", input=given)
    run = (await ann.post("/api/v1/schedules/traced/trigger")).json()
    handler = site.queue.graph_runs(registry)
    try:
        async with site.working(**{"graph.run": handler}):
            while (run := (await ann.get(f"/api/v1/runs/{run['id']}")).json())["completed_at"] is None:
                await site.queue.storage.clock.sleep(20_000)  # type: ignore[arg-type]
    finally:
        await handler.close()
    assert run["status"] == "success", run
    return dict(run)


def _ids(span: ReadableSpan) -> tuple[str, str]:
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


@pytest.mark.req("GRAPH-31")
async def test_worker_service_and_graph_are_in_one_trace_which_the_run_keeps(
    site: Site, spans: InMemorySpanExporter
) -> None:
    heard: list[str] = []

    async def graph(call: Any) -> dict[str, Any]:
        heard.append(call.traceparent)
        return {}

    run = await _ran(site, graph)

    executing, running = spans.get_finished_spans()
    assert (running.name, executing.name) == ("run python:traced", "execute python:traced")
    assert (running.parent, executing.parent) == (None, executing.parent)
    assert executing.parent is not None
    assert f"{executing.parent.span_id:016x}" == _ids(running)[1]
    assert _ids(running)[0] == _ids(executing)[0] == run["trace_id"] == trace_id_from(run["job_id"])
    told = trace_of(heard[0])
    assert told is not None
    assert (told.trace_id, told.span_id) == _ids(executing)
    assert dict(executing.attributes or {})["duly.run_id"] == run["run_id"]


@pytest.mark.req("GRAPH-31")
async def test_without_a_backend_the_run_has_its_trace_id_and_passes_it_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "_tracing", Untraced)
    heard: list[str] = []

    async def graph(call: Any) -> dict[str, Any]:
        heard.append(call.traceparent)
        return {}

    run = await _ran(site, graph)

    told = trace_of(heard[0])
    assert told is not None
    assert told.trace_id == run["trace_id"] == trace_id_from(run["job_id"])
    assert run["trace_url"] is None


async def test_a_failed_execution_is_a_span_that_says_so(quick_site: Site, spans: InMemorySpanExporter) -> None:
    async def bad(_: Any) -> None:
        raise LookupError("no such town")

    service = Service(quick_site, bad)
    await service.ask(await service.grant())

    (span,) = spans.get_finished_spans()
    assert (span.status.is_ok, span.status.description) == (False, "graph_error")


async def test_the_first_callers_trace_is_the_executions_and_a_later_ones_is_not(
    quick_site: Site, spans: InMemorySpanExporter
) -> None:
    service = Service(quick_site, news)
    body = {"execution_grant_id": await service.grant(), "input": {"topic": "ai"}}
    asked = [
        {"Idempotency-Key": "k", "traceparent": f"00-{TRACE}-{SPAN}-01"},
        {"Idempotency-Key": "k", "traceparent": f"00-{TRACE[::-1]}-{SPAN}-01"},
        {"Idempotency-Key": "bad", "traceparent": f"00-{'0' * 32}-{SPAN}-01"},
    ]

    answers = [(await service.client.post(PATH, json=body, headers=headers)).json() for headers in asked]

    assert [each["trace_id"] == TRACE for each in answers] == [True, True, False]
    assert len(answers[2]["trace_id"]) == 32
    first, second = spans.get_finished_spans()
    assert first.parent is not None
    assert (f"{first.parent.span_id:016x}", second.parent) == (SPAN, None)
    assert _ids(second)[0] == answers[2]["trace_id"]


async def test_a_run_links_to_its_trace_where_the_settings_say_how(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    object.__setattr__(site.queue.settings, "trace_url", URL)
    try:
        run = await _ran(site, news_of_nothing)
    finally:
        object.__setattr__(site.queue.settings, "trace_url", None)

    assert run["trace_url"] == URL.replace("{trace_id}", run["trace_id"])


async def news_of_nothing(_: Any) -> dict[str, Any]:
    return {}
