"""Offers to go on in another protocol: one that nobody speaks here is declined.

RFC 9110 lets a server ignore `Upgrade`, and clients that send it count on that. The parser does
not: behind such a head it drops the body that came along, and takes what comes later for a request
of its own, by which others could be smuggled in. So such a head is read once more, without it.
"""

from collections.abc import Iterator
from typing import Protocol

from httptools import HttpParserUpgrade, HttpRequestParser

Headers = list[tuple[bytes, bytes]]
# What belongs to an offer, and to nothing else.
OFFER = frozenset({b"upgrade", b"http2-settings"})
TUNNEL = b"CONNECT"


class Hearer(Protocol):
    """Who is told what a request says."""

    url: bytes
    headers: Headers
    declines: bool


class Parser:
    """Reads requests; what is offered and declined stands in none of them."""

    def __init__(self, hearer: Hearer) -> None:
        self.hearer = hearer
        self.http = fresh(hearer)

    def feed_data(self, data: bytes | memoryview) -> None:
        """Tell what stands in these bytes."""
        while True:
            try:
                self.http.feed_data(data)
            except HttpParserUpgrade as behind:
                if not self.hearer.declines:
                    raise
                data = data[behind.args[0] :]
                self._again()
            else:
                return

    def _again(self) -> None:
        head, self.http = self._head(), fresh(self.hearer)
        self.http.feed_data(head)

    def _head(self) -> bytes:
        version = self.get_http_version().encode()
        line = b"%s %s HTTP/%s" % (self.get_method(), self.hearer.url, version)
        lines = (b"%s: %s" % header for header in without_offer(self.hearer.headers))
        return b"\r\n".join((line, *lines, b"", b""))

    def get_method(self) -> bytes:
        """Of the request that is being read, as all that follows."""
        method: bytes = self.http.get_method()
        return method

    def get_http_version(self) -> str:
        """As in `1.1`."""
        version: str = self.http.get_http_version()
        return version

    def should_keep_alive(self) -> bool:
        """Whether another may follow."""
        return bool(self.http.should_keep_alive())

    def should_upgrade(self) -> bool:
        """Whether it offers another protocol, or asks for a tunnel."""
        return bool(self.http.should_upgrade())

    def is_tunnel(self) -> bool:
        """Whether it asks for a tunnel."""
        return self.get_method() == TUNNEL


def fresh(hearer: Hearer) -> HttpRequestParser:
    """A parser that reads on where one says that it hangs up: the answer comes first."""
    parser = HttpRequestParser(hearer)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def without_offer(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """All of them, but for what belongs to an offer."""
    for name, value in headers:
        if name == b"connection":
            tokens = [each for each in value.split(b",") if each.strip().lower() not in OFFER]
            if tokens:
                yield name, b",".join(tokens)
        elif name not in OFFER:
            yield name, value
