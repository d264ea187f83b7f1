"""The response to one request, read to its end, so that the connection can be kept."""

from __future__ import annotations

from accord.git.bridge_client import seconds_left

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import socket

MAX_RESPONSE_BYTES = 1 << 20
CHUNK_BYTES = 1 << 16
HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"


class WholeResponse:
    """Status and body, read to the end; whether the connection can be used again."""

    __slots__ = ("body", "is_kept", "status")

    def __init__(self, status: int, body: bytes, *, is_kept: bool) -> None:
        self.status, self.body, self.is_kept = status, body, is_kept


def read_response(connection: socket.socket, deadline: float) -> WholeResponse:
    """The response, up to the limit of its size; raises OSError or ValueError."""
    stream = _Stream(connection, deadline)
    first, *lines = stream.until(HEAD_END).split(LINE_END)
    version, status = first.split(b" ", 2)[:2]
    pairs = (line.partition(b":") for line in lines)
    headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
    is_kept = version == b"HTTP/1.1" and headers.get(b"connection") != b"close"
    if headers.get(b"transfer-encoding") == b"chunked":
        body = b"".join(stream.chunks())
    elif b"content-length" in headers:
        body = stream.take(int(headers[b"content-length"]))
    else:
        body, is_kept = stream.rest(), False
    return WholeResponse(int(status), body, is_kept=is_kept)


class _Stream:
    """What a server sends, within a deadline and a size."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection, self.deadline = connection, deadline
        self.buffer = b""
        self.left = MAX_RESPONSE_BYTES

    def until(self, end: bytes) -> bytes:
        """What precedes `end`, which is dropped."""
        while end not in self.buffer:
            self._receive_or_fail()
        found, _, self.buffer = self.buffer.partition(end)
        return found

    def take(self, length: int) -> bytes:
        """So many bytes."""
        while len(self.buffer) < length:
            self._receive_or_fail()
        found, self.buffer = self.buffer[:length], self.buffer[length:]
        return found

    def rest(self) -> bytes:
        """All until the server closes the connection."""
        while self._receive():
            pass
        return self.buffer

    def chunks(self) -> list[bytes]:
        """The parts of a body that a proxy sends in chunks."""
        found: list[bytes] = []
        while size := int(self.until(LINE_END).partition(b";")[0], 16):
            found.append(self.take(size))
            self.until(LINE_END)
        while self.until(LINE_END):  # headers behind the body
            pass
        return found

    def _receive(self) -> bool:
        self.connection.settimeout(seconds_left(self.deadline))
        received = self.connection.recv(CHUNK_BYTES)
        self.buffer += received
        self.left -= len(received)
        if self.left < 0:
            raise ValueError("the response is too large")
        return bool(received)

    def _receive_or_fail(self) -> None:
        if not self._receive():
            raise ConnectionError("the server closed the connection")
