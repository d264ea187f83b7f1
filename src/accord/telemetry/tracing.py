"""OpenTelemetry traces, if enabled: what the server did and for how long, never content.

The packages are imported only when tracing is enabled. Spans of the engine are created when the
work is done, from times that are measured anyway. Only the span of a request lives as long as the
request, so that work belongs to it, and it belongs to the caller's trace from `traceparent`.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter, time_ns
from typing import TYPE_CHECKING

from accord import __version__
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.counters import TimedSpan

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

# Seconds to flush at the end; an unreachable collector must not block a stop.
SHUTDOWN_TIMEOUT_S = 2.0
OTEL_ATTRIBUTE_NAMES = {
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
}
REQUEST_SPAN_NAME = "http.request"


class Tracing:
    """Sends spans to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names."""

    def __init__(self) -> None:
        try:
            from opentelemetry import context, trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            detail = "Tracing needs more packages: pip install 'accord[otel]', or leave out --otel"
            raise Refused(Reason.MALFORMED, detail) from None
        resource = Resource.create({"service.name": "accord", "service.version": __version__})
        # Only for this server: nothing is registered process-wide.
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self.provider.get_tracer("accord", __version__)
        self.trace, self.context = trace, context
        self.headers = TraceContextTextMapPropagator()

    @contextmanager
    def request(
        self, headers: Iterable[tuple[bytes, bytes]], about: Mapping[str, str | int]
    ) -> Iterator[None]:
        """The span of a request, as part of the caller's trace."""
        texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        caller = self.headers.extract(texts, self.context.Context())
        kind = self.trace.SpanKind.SERVER
        span = self.tracer.start_span(REQUEST_SPAN_NAME, context=caller, kind=kind)
        before = self.context.attach(self.trace.set_span_in_context(span, caller))
        try:
            yield
        finally:
            self.context.detach(before)
            span.set_attributes(otel_attributes(about))
            span.end()

    def span(self, work: TimedSpan, parts: Sequence[TimedSpan] = ()) -> None:
        """Report finished work as part of the current request."""
        # A timer set by a request does not belong to it once the request is answered.
        within = self.trace.get_current_span().is_recording()
        context = self.context.get_current() if within else self.context.Context()
        zero = time_ns() - int(perf_counter() * 1e9)
        whole = self._span(work, context, zero)
        inside = self.trace.set_span_in_context(whole, context)
        for part in parts:
            self._span(part, inside, zero).end(end_time=zero + int(part.ended * 1e9))
        whole.end(end_time=zero + int(work.ended * 1e9))

    def _span(self, work: TimedSpan, context: "Context", zero: int) -> "Span":
        began = zero + int(work.started * 1e9)
        return self.tracer.start_span(
            work.name,
            context=context,
            attributes=otel_attributes(work.attributes),
            start_time=began,
        )

    async def stop(self) -> None:
        """Flush what is left, within the timeout."""
        last = threading.Thread(target=self.provider.shutdown, daemon=True)
        last.start()
        await asyncio.to_thread(last.join, SHUTDOWN_TIMEOUT_S)


def otel_attributes(about: Mapping[str, str | int]) -> dict[str, str | int]:
    """Attributes under OpenTelemetry's standard names, or else under our own."""
    return {OTEL_ATTRIBUTE_NAMES.get(key, f"accord.{key}"): value for key, value in about.items()}
