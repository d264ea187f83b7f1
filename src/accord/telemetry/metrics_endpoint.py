"""Access to the metrics, and a short cache."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from time import monotonic

from starlette.requests import Request
from starlette.responses import Response

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.edge.origin import is_loopback
from accord.transports.http.admin import AdminAccess, ChargeRequest, admin_refusal, no_charge
from accord.transports.http.responses import JSON_HEADERS

# Requests within this time get the cached response.
METRICS_CACHE_S = 0.25
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# With one of these headers the request comes from a proxy, so its origin is unknown.
PROXY_HEADERS = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"})


class MetricsEndpoint:
    """`GET /metrics`: from this machine without a token, else with an operator's."""

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        desk: AdminAccess,
        clock: Callable[[], float] = monotonic,
        *,
        count: ChargeRequest = no_charge,
    ) -> None:
        self.render = read
        self.access = desk
        self.charge = count
        self.clock = clock
        self.cached = b""
        self.rendered_at: float | None = None
        self.render_lock = asyncio.Lock()

    async def metrics(self, request: Request) -> Response:
        try:
            if not is_direct_loopback(request):
                await self._ensure_operator(request)
        except Refused as refusal:
            return admin_refusal(refusal)
        return Response(await self._cached_text(), 200, JSON_HEADERS, CONTENT_TYPE)

    async def _ensure_operator(self, request: Request) -> None:
        actor = await self.access.authenticate(request)
        self.charge(actor)
        if not actor.is_operator:
            raise Refused(Reason.FORBIDDEN, "Only operators may read the metrics")

    async def _cached_text(self) -> bytes:
        async with self.render_lock:
            if self.rendered_at is None or self.clock() - self.rendered_at >= METRICS_CACHE_S:
                self.cached = await self.render()
                self.rendered_at = self.clock()
        return self.cached


def is_direct_loopback(request: Request) -> bool:
    """Whether the request comes from this machine and not through a proxy."""
    if any(name in PROXY_HEADERS for name in request.headers):
        return False
    host = request.client.host if request.client else ""
    try:
        return ipaddress.ip_address(host).is_loopback and is_loopback(request.headers["host"])
    except (ValueError, KeyError):
        return False
