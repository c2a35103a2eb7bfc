"""Spans go where OpenTelemetry's own variables say; without them its SDK is not loaded."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from duly.application.untraced import Untraced
from duly.domain.errors import InvalidInput
from duly.settings import settings_from
from duly.system.tracing import OtelTracing, tracing_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
WITHOUT = """
import asyncio, sys
from duly import Duly, every
app = Duly(sys.argv[1])
async def graph(input): return {}
app.graph("g", graph, schedule=every("1h"))
async def main():
    async with app.running():
        await app.result(await app.trigger("g"), timeout="30s")
asyncio.run(main())
# FastAPI loads the API by itself, where that is installed.
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
"""


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.req("GRAPH-31")
def test_spans_reach_a_collector_in_the_trace_of_their_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        tracing = tracing_of({"OTEL_EXPORTER_OTLP_ENDPOINT": url})
        assert isinstance(tracing, OtelTracing)
        span = tracing.begin("execute g", trace_id=TRACE, parent=None, seed="s", attributes={"duly.attempt": 2})
        span.end("graph_error")
        tracing.provider.shutdown()

    (sent,) = [ExportTraceServiceRequest.FromString(body) for body in received]
    (kept,) = sent.resource_spans[0].scope_spans[0].spans
    assert (kept.trace_id.hex(), kept.parent_span_id, kept.name) == (TRACE, b"", "execute g")
    assert kept.status.message == "graph_error"
    assert span.trace.span_id == kept.span_id.hex()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_nothing_is_traced(environment: dict[str, str]) -> None:
    assert isinstance(tracing_of(environment), Untraced)


def test_a_collector_without_the_sdk_is_said_and_no_reason_to_fail(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    caplog.set_level(logging.WARNING, logger="duly.traces")

    assert isinstance(tracing_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}), Untraced)
    assert "duly[otel]" in caplog.text


def test_nothing_of_it_is_loaded_by_those_who_do_not_trace(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "duly.db")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert ran.returncode == 0, ran.stderr


@pytest.mark.req("GRAPH-31", error=True)
@pytest.mark.parametrize("text", ["https://traces.example/", "javascript:{trace_id}", "{trace_id}"])
def test_a_link_that_leads_to_no_trace_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="DULY_TRACE_URL"):
        settings_from({"DULY_TRACE_URL": text})
