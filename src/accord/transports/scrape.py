"""Who may read the metrics, and how often they are looked up."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from time import monotonic

from starlette.requests import Request
from starlette.responses import Response

from accord.core.kernel.refusal import Refused, Why
from accord.transports.guard import is_loopback
from accord.transports.operator import Count, Desk, refusal, uncounted
from accord.transports.replies import HEADERS

# Whoever asks more often gets what was found last.
FRESH_S = 0.25
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A proxy on this machine speaks for others.
FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"})


class Scrape:
    """`GET /metrics`: for this machine without a token, for others with an operator's."""

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        desk: Desk,
        clock: Callable[[], float] = monotonic,
        *,
        count: Count = uncounted,
    ) -> None:
        self.read = read
        self.desk = desk
        self.count = count
        self.clock = clock
        self.found = b""
        self.looked: float | None = None
        self.turn = asyncio.Lock()

    async def page(self, request: Request) -> Response:
        """The numbers, or why not."""
        try:
            if not is_near(request):
                await self._operator(request)
        except Refused as no:
            return refusal(no)
        return Response(await self._text(), 200, HEADERS, CONTENT_TYPE)

    async def _operator(self, request: Request) -> None:
        actor = await self.desk.authenticate(request)
        self.count(actor)
        if not actor.is_operator:
            raise Refused(Why.FORBIDDEN, "Only operators read the metrics")

    async def _text(self) -> bytes:
        async with self.turn:
            if self.looked is None or self.clock() - self.looked >= FRESH_S:
                self.found = await self.read()
                self.looked = self.clock()
        return self.found


def is_near(request: Request) -> bool:
    """Whether it comes from this machine, for itself: no proxy's, and to no other name."""
    if any(name in FORWARDED for name in request.headers):
        return False
    host = request.client.host if request.client else ""
    try:
        return ipaddress.ip_address(host).is_loopback and is_loopback(request.headers["host"])
    except (ValueError, KeyError):
        return False
