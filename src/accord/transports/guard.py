"""Pages of other sites: what their requests carry, and why they get nothing here."""

import ipaddress
import re
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from accord.core.kernel.refusal import Refused, Why
from accord.transports.replies import refusal

# A balancer asks these without naming a host; they say nothing of anybody.
PROBES = frozenset({"/healthz", "/readyz"})
# Where a browser says a request comes from that shows no origin, as that of an image does.
FOREIGN = frozenset({"cross-site", "same-site"})
# A name or an address, with a port or without.
HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def check_origin(hosts: Sequence[str], origins: Sequence[str], *, strict: bool) -> None:
    """A page of another site gets nothing; on trust, neither does a foreign host name."""
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
        raise Refused(Why.FORBIDDEN, "A request names one host")
    host = hosts[0]
    for origin in origins:
        if place(origin) != host.lower():
            raise Refused(Why.FORBIDDEN, f"Pages from {origin[:100]} may not connect here")
    if strict and not is_loopback(host):
        raise Refused(Why.FORBIDDEN, "With --auth open, connect to 127.0.0.1 or localhost")


def place(origin: str) -> str:
    """Host and port of an origin, empty when it has none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether what a request names as its host can only mean this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Guard:
    """An application that pages of other sites cannot use, and nobody once it is closed."""

    def __init__(
        self, app: ASGIApp, *, strict: bool, closed: Callable[[], bool] = lambda: False
    ) -> None:
        self.app = app
        self.strict = strict
        self.closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or say why not."""
        try:
            self._check(scope)
        except Refused as no:
            await refusal(no)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        probing = scope["path"] in PROBES
        if self.closed() and not probing:
            raise Refused(Why.UNAVAILABLE, "The server stops; try again in a moment")
        if self.strict or not probing:
            hosts, origins = named(scope, b"host"), named(scope, b"origin")
            check_origin(hosts, origins, strict=self.strict)
        if self.strict and scope["path"] != "/" and FOREIGN & {*named(scope, b"sec-fetch-site")}:
            raise Refused(Why.FORBIDDEN, "With --auth open, pages of other sites get nothing here")


def named(scope: Scope, name: bytes) -> list[str]:
    """All values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
