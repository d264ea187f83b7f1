"""Every HTTP request is counted, by the route that took it and never by what was asked."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Protocol

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accord.engine.tally import SECONDS, Spread, Stretch

log = logging.getLogger("accord.http")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
NOBODY = nullcontext()


class Tracer(Protocol):
    """Who traces: what is over, and requests while they last, so that work belongs to them."""

    def span(self, work: Stretch, parts: Sequence[Stretch] = ()) -> None:
        """Work that is over."""
        ...

    def request(
        self, headers: Iterable[tuple[bytes, bytes]], about: Mapping[str, str | int]
    ) -> AbstractContextManager[None]:
        """A request with these headers; `about` says at its end what became of it."""
        ...


class Requests:
    """How many there were, and how long they took."""

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: defaultdict[str, Spread] = defaultdict(lambda: Spread(SECONDS))
        self.tracer: Tracer | None = None

    def note(self, method: str, route: str, status: int, began: float) -> dict[str, str | int]:
        """One more is over; what there is to say of it."""
        ended = perf_counter()
        about: dict[str, str | int] = {"method": method, "route": route, "status": status}
        self.counts[method, route, status] += 1
        self.seconds[route].add(ended - began)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("http.request", extra=about | {"ms": round((ended - began) * 1000)})
        return about


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

        about: dict[str, str | int] = {}
        tracer = self.requests.tracer
        with tracer.request(scope["headers"], about) if tracer else NOBODY:
            try:
                await self.app(scope, receive, noted)
            finally:
                method = scope["method"] if scope["method"] in METHODS else OTHER
                route = self.names.get(scope.get("endpoint"), OTHER)
                about |= self.requests.note(method, route, status, began)
