"""Ignoring offers to upgrade to a protocol that this server does not speak.

RFC 9110 lets a server ignore `Upgrade`, and clients that send it rely on that. httptools does not:
after such a head it drops the body that came with it and parses what follows as a new request,
which allows request smuggling. So the head is parsed again without the upgrade headers.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from httptools import HttpParserUpgrade, HttpRequestParser

Headers = list[tuple[bytes, bytes]]
# Headers that belong to an upgrade offer and to nothing else.
UPGRADE_HEADERS = frozenset({b"upgrade", b"http2-settings"})
TUNNEL_METHOD = b"CONNECT"


class RequestListener(Protocol):
    """Receives the parser's callbacks."""

    url: bytes
    headers: Headers
    declines_upgrade: bool


class UpgradeDecliningParser:
    """An HTTP parser that continues after an upgrade the server declines."""

    def __init__(self, listener: RequestListener) -> None:
        self.listener = listener
        self._use(new_parser(listener))

    def _use(self, parser: HttpRequestParser) -> None:
        self.parser = parser
        # The parser's own methods, because every request asks several times.
        self.get_method: Callable[[], bytes] = parser.get_method
        self.get_http_version: Callable[[], str] = parser.get_http_version
        self.should_keep_alive: Callable[[], bool] = parser.should_keep_alive
        # Whether the request offers another protocol or is a CONNECT.
        self.should_upgrade: Callable[[], bool] = parser.should_upgrade

    def feed_data(self, data: bytes | memoryview) -> None:
        """Parse these bytes; raises HttpParserUpgrade for an upgrade that is not declined."""
        while True:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                if not self.listener.declines_upgrade:
                    raise
                data = data[upgrade.args[0] :]
                self._reparse_head()
            else:
                return

    def _reparse_head(self) -> None:
        head = self._head_without_upgrade()
        self._use(new_parser(self.listener))
        self.parser.feed_data(head)

    def _head_without_upgrade(self) -> bytes:
        version = self.get_http_version().encode()
        line = b"%s %s HTTP/%s" % (self.get_method(), self.listener.url, version)
        lines = (b"%s: %s" % header for header in without_upgrade_headers(self.listener.headers))
        return b"\r\n".join((line, *lines, b"", b""))

    def is_tunnel(self) -> bool:
        return self.get_method() == TUNNEL_METHOD


def new_parser(listener: RequestListener) -> HttpRequestParser:
    """A parser that reads on after `Connection: close`; the protocol stops it later."""
    parser = HttpRequestParser(listener)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def without_upgrade_headers(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """All headers except those of the upgrade offer."""
    for name, value in headers:
        if name == b"connection":
            tokens = [
                token for token in value.split(b",") if token.strip().lower() not in UPGRADE_HEADERS
            ]
            if tokens:
                yield name, b",".join(tokens)
        elif name not in UPGRADE_HEADERS:
            yield name, value
