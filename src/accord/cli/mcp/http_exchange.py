"""HTTP for the bridge: one request, one response, JSON or server-sent events.

Hosts start the bridge for every agent and wait for it, so it imports as little as it can: the HTTP
client of the standard library would take a third of the time to the first answer.
"""

from __future__ import annotations

import socket
from contextlib import suppress

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_HEAD_BYTES = 64 << 10
MAX_BODY_BYTES = 64 << 20
CONNECT_TIMEOUT_S = 5.0
# Longer than the longest wait of any tool; a stream of events has keep-alive comments.
READ_TIMEOUT_S = 90.0


UNAUTHORIZED, NOT_FOUND = 401, 404
HTTP_ERROR = 400


class BridgeError(Exception):
    """The request got no answer; the sentence is for the person at the host."""


class NoServerError(BridgeError):
    """There is no server at the moment."""


class NotSentError(OSError):
    """No connection: the server has not seen the request."""


class Exchange:
    """One request on a connection of its own; another thread may `close` it."""

    def __init__(self, url: str, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        scheme, _, rest = url.partition("://")
        self.host, slash, path = rest.partition("/")
        self.path = f"{slash}{path}".rstrip("/")
        self.is_tls = scheme == "https"
        self.read_timeout_s = read_timeout_s
        self.status = 0
        self.headers: dict[str, str] = {}
        self._socket: socket.socket | None = None
        self._buffer = b""

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request and read the head of the response; raises NotSentError, OSError."""
        lines = [f"{method} {self.path}{path} HTTP/1.1", f"Host: {self.host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "Connection: close"]
        if any(c in line for line in lines for c in "\r\n"):
            raise ValueError("line break in a header")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        try:
            self._socket = self._connect()
        except OSError as error:
            raise NotSentError(str(error)) from error
        self._socket.settimeout(self.read_timeout_s)
        self._socket.sendall(head + body)
        self._read_head()

    def _connect(self) -> socket.socket:
        host, port = split_netloc(self.host, 443 if self.is_tls else 80)
        # As bytes, because a text would be encoded by IDNA, which takes long to import.
        address = host.encode() if host.isascii() else host
        place: Any = (address, port)
        plain = socket.create_connection(place, CONNECT_TIMEOUT_S)
        if not self.is_tls:
            return plain
        import ssl

        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)

    def _more(self) -> bytes:
        if self._socket is None:
            raise ConnectionError("closed")
        return self._socket.recv(65536)

    def _read_head(self) -> None:
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > MAX_HEAD_BYTES or not (data := self._more()):
                raise ConnectionError("the server closed the connection without an answer")
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ", 2)[1])
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}

    @property
    def is_event_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def parts(self) -> Iterator[bytes]:
        """The body as it arrives."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
            return
        left = int(self.headers.get("content-length", MAX_BODY_BYTES))
        while left > 0:
            data, self._buffer = self._buffer or self._more(), b""
            if not data:
                return
            left -= len(data)
            yield data

    def _chunks(self) -> Iterator[bytes]:
        while True:
            while b"\r\n" not in self._buffer:
                if not (data := self._more()):
                    raise ConnectionError("the answer was cut off")
                self._buffer += data
            size, _, self._buffer = self._buffer.partition(b"\r\n")
            left = int(size.partition(b";")[0], 16)
            if not left:
                return
            while len(self._buffer) < left + 2:
                if not (data := self._more()):
                    raise ConnectionError("the answer was cut off")
                self._buffer += data
            yield self._buffer[:left]
            self._buffer = self._buffer[left + 2 :]

    def body(self) -> bytes:
        """The whole body; raises OSError if it is cut off or too large."""
        joined = bytearray()
        for part in self.parts():
            joined += part
            if len(joined) > MAX_BODY_BYTES:
                raise ConnectionError("the answer is too large")
        if len(joined) < int(self.headers.get("content-length", 0)):
            raise ConnectionError("the answer was cut off")
        return bytes(joined)

    def events(self) -> Iterator[bytes]:
        """The data of each server-sent event."""
        pending = b""
        for part in self.parts():
            pending += part.replace(b"\r\n", b"\n")
            *events, pending = pending.split(b"\n\n")
            for event in events:
                lines = [line[5:].strip() for line in event.split(b"\n") if line[:5] == b"data:"]
                if any(lines):
                    yield b"".join(lines)

    def close(self) -> None:
        """End the exchange, whatever it waits for."""
        connection, self._socket = self._socket, None
        if connection is not None:
            with suppress(OSError):  # it was closed already
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def split_netloc(netloc: str, default: int) -> tuple[str, int]:
    """Host and port of an address, which may be an IPv6 address in brackets."""
    if netloc.startswith("["):
        host, _, rest = netloc[1:].partition("]")
        return host, int(rest[1:] or default)
    host, _, port = netloc.partition(":")
    return host, int(port or default)
