"""OpenTelemetry, for whoever asks for it: what the server did and how long it took, never content.

Nothing of it is imported before it is asked for. Spans of the engine are made when the work is
over, from the times that are measured anyway; only that of a request lives as long as the request,
so that what it led to belongs to it, and it to whatever its caller says in `traceparent`.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter, time_ns
from typing import TYPE_CHECKING

from accord import __version__
from accord.core.kernel.refusal import Refused, Why
from accord.engine.tally import Stretch

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

# The collector's last chance; it never keeps a server from ending.
LAST_S = 2.0
NAMES = {
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
}
SERVED = "http.request"


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
            detail = "Traces need more packages: pip install 'accord[otel]', or leave out --otel"
            raise Refused(Why.MALFORMED, detail) from None
        resource = Resource.create({"service.name": "accord", "service.version": __version__})
        # Of this server alone: nothing is registered for the process.
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self.provider.get_tracer("accord", __version__)
        self.trace, self.context = trace, context
        self.headers = TraceContextTextMapPropagator()

    @contextmanager
    def request(
        self, headers: Iterable[tuple[bytes, bytes]], about: Mapping[str, str | int]
    ) -> Iterator[None]:
        """A request, as part of what its caller does; what it leads to is part of it."""
        said = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        caller = self.headers.extract(said, self.context.Context())
        kind = self.trace.SpanKind.SERVER
        span = self.tracer.start_span(SERVED, context=caller, kind=kind)
        before = self.context.attach(self.trace.set_span_in_context(span, caller))
        try:
            yield
        finally:
            self.context.detach(before)
            span.set_attributes(named(about))
            span.end()

    def span(self, work: Stretch, parts: Sequence[Stretch] = ()) -> None:
        """Work that is over, part of the request that is under way; it is sent later."""
        # A timer that a request set belongs to it no more once it is answered.
        within = self.trace.get_current_span().is_recording()
        context = self.context.get_current() if within else self.context.Context()
        zero = time_ns() - int(perf_counter() * 1e9)
        whole = self._span(work, context, zero)
        inside = self.trace.set_span_in_context(whole, context)
        for part in parts:
            self._span(part, inside, zero).end(end_time=zero + int(part.ended * 1e9))
        whole.end(end_time=zero + int(work.ended * 1e9))

    def _span(self, work: Stretch, context: "Context", zero: int) -> "Span":
        began = zero + int(work.began * 1e9)
        return self.tracer.start_span(
            work.name, context=context, attributes=named(work.about), start_time=began
        )

    async def stop(self) -> None:
        """Send what is left, if the collector takes it in time."""
        last = threading.Thread(target=self.provider.shutdown, daemon=True)
        last.start()
        await asyncio.to_thread(last.join, LAST_S)


def named(about: Mapping[str, str | int]) -> dict[str, str | int]:
    """Under the names that everybody uses, or else our own."""
    return {NAMES.get(key, f"accord.{key}"): value for key, value in about.items()}
