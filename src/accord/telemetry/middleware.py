"""Counts and times HTTP requests by route, never by path or parameters."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Protocol

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accord.engine.counters import SECONDS_BUCKETS, Histogram, TimedSpan
from accord.transports.edge.http_protocol import STATUS_STATE_KEY

log = logging.getLogger("accord.http")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_LABEL = "other"


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


class RequestStatsMiddleware:
    """ASGI middleware that counts and times requests."""

    def __init__(
        self,
        app: ASGIApp,
        requests: RequestStats,
        routes: Iterable[BaseRoute] = (),
        label: str = OTHER_LABEL,
    ) -> None:
        self.app = app
        self.stats = requests
        self.label = label  # for a request that reached none of the routes
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

        tracer = self.stats.tracer
        if tracer is None:
            try:
                await self.app(scope, receive, noted)
            finally:
                self._record(scope, status, began)
            return
        about: dict[str, str | int] = {}
        with tracer.request(scope["headers"], about):
            try:
                await self.app(scope, receive, noted)
            finally:
                method, route, answered = self._record(scope, status, began)
                about |= {"method": method, "route": route, "status": answered}

    def _record(self, scope: Scope, status: int, began: float) -> tuple[str, str, int]:
        """Record a finished request by method, route and status, which are returned."""
        seconds = perf_counter() - began
        method = scope["method"] if scope["method"] in METHODS else OTHER_LABEL
        route = self.route_by_endpoint.get(scope.get("endpoint"), self.label)
        answered: int = scope.get("state", {}).get(STATUS_STATE_KEY, status)
        self.stats.counts[method, route, answered] += 1
        self.stats.seconds[route].add(seconds)
        if log.isEnabledFor(logging.DEBUG):
            about = {"method": method, "route": route, "status": answered}
            log.debug("http.request", extra={**about, "ms": round(seconds * 1000)})
        return method, route, answered
