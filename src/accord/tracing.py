"""OpenTelemetry, for whoever asks for it: what the server did and how long it took, never content.

Nothing of it is imported before it is asked for. Spans are made when the work is over, from the
times that are measured anyway, so that a message costs nothing more.
"""

import asyncio
import threading
from collections.abc import Mapping
from time import perf_counter, time_ns

from accord import __version__
from accord.core.kernel.refusal import Refused, Why

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
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace import SpanKind
        except ImportError:
            detail = "Traces need more packages: pip install 'accord[otel]', or leave out --otel"
            raise Refused(Why.MALFORMED, detail) from None
        resource = Resource.create({"service.name": "accord", "service.version": __version__})
        # Of this server alone: nothing is registered for the process.
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self.provider.get_tracer("accord", __version__)
        self.kinds = {SERVED: SpanKind.SERVER}
        self.usual = SpanKind.INTERNAL

    def span(self, name: str, began: float, ended: float, about: Mapping[str, str | int]) -> None:
        """A stretch of work that is over; it is sent later, by another thread."""
        zero = time_ns() - int(perf_counter() * 1e9)
        named = {NAMES.get(key, f"accord.{key}"): value for key, value in about.items()}
        span = self.tracer.start_span(
            name,
            kind=self.kinds.get(name, self.usual),
            attributes=named,
            start_time=zero + int(began * 1e9),
        )
        span.end(end_time=zero + int(ended * 1e9))

    async def stop(self) -> None:
        """Send what is left, if the collector takes it in time."""
        last = threading.Thread(target=self.provider.shutdown, daemon=True)
        last.start()
        await asyncio.to_thread(last.join, LAST_S)
