"""Counts and times HTTP requests by route, never by path or parameters."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Protocol

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accord.engine.counters import SECONDS_BUCKETS, Histogram, TimedSpan
from accord.transports.edge.http_protocol import STATUS_STATE_KEY

log = logging.getLogger("accord.http")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_LABEL = "other"
NO_SPAN = nullcontext()


class Tracer(Protocol):
    """Receives finished work and opens spans for requests, so that work belongs to its request."""

    def span(self, work: TimedSpan, parts: Sequence[TimedSpan] = ()) -> None:
        """Report finished work."""
        ...

    def request(
        self, headers: Iterable[tuple[bytes, bytes]], about: Mapping[str, str | int]
    ) -> AbstractContextManager[None]:
        """Trace a request with these headers; `about` is read at its end."""
        ...


class RequestStats:
    """Number and duration of requests."""

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(SECONDS_BUCKETS))
        self.tracer: Tracer | None = None

    def record(self, method: str, route: str, status: int, began: float) -> dict[str, str | int]:
        """Record a finished request; returns its attributes."""
        ended = perf_counter()
        about: dict[str, str | int] = {"method": method, "route": route, "status": status}
        self.counts[method, route, status] += 1
        self.seconds[route].add(ended - began)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("http.request", extra=about | {"ms": round((ended - began) * 1000)})
        return about


class RequestStatsMiddleware:
    """ASGI middleware that counts and times requests."""

    def __init__(self, app: ASGIApp, requests: RequestStats, routes: Iterable[BaseRoute]) -> None:
        self.app = app
        self.stats = requests
        self.route_by_endpoint = {
            endpoint: str(getattr(route, "path", OTHER_LABEL))
            for route in routes
            if (endpoint := getattr(route, "endpoint", getattr(route, "app", None)))
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        about: dict[str, str | int] = {}
        tracer = self.stats.tracer
        with tracer.request(scope["headers"], about) if tracer else NO_SPAN:
            try:
                await self.app(scope, receive, noted)
            finally:
                method = scope["method"] if scope["method"] in METHODS else OTHER_LABEL
                route = self.route_by_endpoint.get(scope.get("endpoint"), OTHER_LABEL)
                answered = scope.get("state", {}).get(STATUS_STATE_KEY, status)
                about |= self.stats.record(method, route, answered, began)
