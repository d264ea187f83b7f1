"""Every HTTP request is counted, by the route that took it and never by what was asked."""

import logging
from collections import defaultdict
from collections.abc import Iterable
from time import perf_counter

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accord.engine.tally import SECONDS, Spread, Trace

log = logging.getLogger("accord.http")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"


class Requests:
    """How many there were, and how long they took."""

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: defaultdict[str, Spread] = defaultdict(lambda: Spread(SECONDS))
        self.trace: Trace | None = None

    def note(self, method: str, route: str, status: int, began: float) -> None:
        """One more is over."""
        ended = perf_counter()
        about: dict[str, str | int] = {"method": method, "route": route, "status": status}
        self.counts[method, route, status] += 1
        self.seconds[route].add(ended - began)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("http.request", extra=about | {"ms": round((ended - began) * 1000)})
        if self.trace is not None:
            self.trace("http.request", began, ended, about)


class Counted:
    """An application whose requests are counted and timed."""

    def __init__(self, app: ASGIApp, requests: Requests, routes: Iterable[BaseRoute]) -> None:
        self.app = app
        self.requests = requests
        self.names = {
            endpoint: str(getattr(route, "path", OTHER))
            for route in routes
            if (endpoint := getattr(route, "endpoint", getattr(route, "app", None)))
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand it on, and note what became of it."""
        began, status = perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            method = scope["method"] if scope["method"] in METHODS else OTHER
            route = self.names.get(scope.get("endpoint"), OTHER)
            self.requests.note(method, route, status, began)
