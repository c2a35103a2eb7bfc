"""Spans for OpenTelemetry, where its SDK is installed and a collector is named; else its SDK is not imported."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duly.application.untraced import Untraced
from duly.domain.traces import Trace, is_trace_id
from duly.ports.tracing import Span, Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_COLLECTORS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_log = logging.getLogger("duly.traces")


def tracing_of(environment: Mapping[str, str]) -> Tracing:
    """As OpenTelemetry's own variables say: a collector's address, headers, the service's name, sampling."""
    is_off = (
        environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if is_off or not any(environment.get(name) for name in _COLLECTORS):
        return Untraced()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        _log.warning("a collector of spans is set, but nothing to send them with: pip install 'duly[otel]'")
        return Untraced()
    provider = provider_named("duly")
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OtelTracing(provider)


def provider_named(service: str) -> "TracerProvider":
    """Its root spans have the trace ids that runs have."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

    class Chosen(RandomIdGenerator):
        trace_id: int | None = None

        def generate_trace_id(self) -> int:
            chosen, self.trace_id = self.trace_id, None
            return super().generate_trace_id() if chosen is None else chosen

    # OTEL_SERVICE_NAME wins, if it is set.
    resource = Resource({"service.name": service}).merge(Resource.create())
    return TracerProvider(resource=resource, id_generator=Chosen())


@dataclass(frozen=True, slots=True)
class OtelTracing:
    provider: "TracerProvider"

    def begin(
        self, name: str, *, trace_id: str, parent: Trace | None, seed: str, attributes: Mapping[str, str | int]
    ) -> Span:
        if not is_trace_id(trace_id):
            return Untraced().begin(name, trace_id=trace_id, parent=parent, seed=seed, attributes=attributes)
        from opentelemetry.context import Context  # noqa: PLC0415

        above = Context() if parent is None or parent.trace_id != trace_id else _remote(parent)
        tracer = self.provider.get_tracer("duly")
        # Used up by the next line: nothing is awaited in between.
        self.provider.id_generator.trace_id = int(trace_id, 16)  # type: ignore[attr-defined]
        span = tracer.start_span(name, context=above, attributes=dict(attributes))
        self.provider.id_generator.trace_id = None  # type: ignore[attr-defined]
        return OtelSpan(span)


@dataclass(frozen=True, slots=True)
class OtelSpan:
    span: Any

    @property
    def trace(self) -> Trace:
        context = self.span.get_span_context()
        return Trace(f"{context.trace_id:032x}", f"{context.span_id:016x}", bool(context.trace_flags.sampled))

    def end(self, error: str | None = None) -> None:
        if error is not None:
            from opentelemetry.trace import StatusCode  # noqa: PLC0415

            self.span.set_status(StatusCode.ERROR, error)
        self.span.end()


def _remote(parent: Trace) -> Any:
    from opentelemetry.context import Context  # noqa: PLC0415
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context  # noqa: PLC0415

    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    context = SpanContext(int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(context), Context())
