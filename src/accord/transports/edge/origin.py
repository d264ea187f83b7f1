"""Rejecting requests from web pages of other origins, and DNS rebinding (OPEN-29)."""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.http.responses import refusal_response_at

# Load balancers probe these without a host name; they reveal nothing about anyone.
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
# `Sec-Fetch-Site` values of requests that carry no Origin, for example for an image.
FOREIGN_SITES = frozenset({"cross-site", "same-site"})
CHECKED_HEADERS = frozenset({b"host", b"origin", b"sec-fetch-site"})
OWN_HOST_DETAIL = (
    "The Host header does not name this server; connect to the address it listens on, or start it "
    "with --public-url"
)
# A name or an address, with an optional port.
HOST_PATTERN = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def check_origin(hosts: Sequence[str], origins: Sequence[str], *, loopback_only: bool) -> None:
    """Refuse other origins; `loopback_only` also refuses any host name that is not loopback."""
    if len(hosts) != 1 or not HOST_PATTERN.fullmatch(hosts[0]):
        raise Refused(Reason.FORBIDDEN, "Send exactly one valid Host header")
    host = hosts[0]
    for origin in origins:
        if netloc_of(origin) != host.lower():
            raise Refused(
                Reason.FORBIDDEN, f"Web pages from {origin[:100]} may not connect to this server"
            )
    if loopback_only and not is_loopback(host):
        raise Refused(Reason.FORBIDDEN, "With --auth open, connect to 127.0.0.1 or localhost")


@lru_cache(maxsize=256)
def is_good_host(name: bytes, value: bytes, loopback_only: bool) -> bool:  # noqa: FBT001 - a key of the cache
    """Whether a request with this header alone, of those that are checked, is let in."""
    try:
        check_origin([value.decode("latin-1")], (), loopback_only=loopback_only)
    except Refused:
        return False
    return name == b"host"


def netloc_of(origin: str) -> str:
    """Host and port of an origin; empty when it has none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a Host header can only mean this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def names_this_server(host: str, bound: str, public_url: str | None) -> bool:
    """Whether a Host header means this server and not a name that an attacker points at it.

    That is loopback, the address it listens on, its public address, and any address in digits if it
    listens on all of them: only names can be rebound.
    """
    name = hostname_of(host)
    own = {bound.lower(), hostname_of(netloc_of(public_url or ""))} - {""}
    if is_loopback(host) or name in own:
        return True
    return is_address(name) and is_address(bound) and ipaddress.ip_address(bound).is_unspecified


def hostname_of(host: str) -> str:
    """The name in a Host header; empty when it has none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Whether this is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class OriginMiddleware:
    """Refuses requests from other origins, and everything but health checks while stopping."""

    def __init__(
        self, app: ASGIApp, *, strict: bool, closed: Callable[[], bool] = lambda: False
    ) -> None:
        self.app = app
        self.loopback_only = strict
        self.is_stopping = closed

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        try:
            self._check(scope)
        except Refused as refusal:
            return refusal_response_at(scope["path"], refusal)(scope, receive, send)
        return self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        is_health_check = scope["path"] in HEALTH_PATHS
        if self.is_stopping() and not is_health_check:
            raise Refused(Reason.UNAVAILABLE, "The server is stopping; try again in a moment")
        checked = [(name, value) for name, value in scope["headers"] if name in CHECKED_HEADERS]
        if len(checked) == 1 and is_good_host(*checked[0], self.loopback_only):
            return  # the usual request of a program: a known host, and no web page behind it
        if self.loopback_only or not is_health_check:
            hosts, origins = header_values(scope, b"host"), header_values(scope, b"origin")
            check_origin(hosts, origins, loopback_only=self.loopback_only)
        if (
            self.loopback_only
            and scope["path"] != "/"
            and FOREIGN_SITES & {*header_values(scope, b"sec-fetch-site")}
        ):
            raise Refused(
                Reason.FORBIDDEN, "With --auth open, web pages of other sites may not connect"
            )


def header_values(scope: Scope, name: bytes) -> list[str]:
    """All values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
