"""Bytes on a new connection: answers are whole, none is a failure of ours, none tells too much."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.views import sessions
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.support.in_process_server import PIECE_SEPARATOR, SESSION, ServerPool
from tests.fuzz.targets import FuzzInput

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
RESPONSE_START = re.compile(rb"(?:HTTP/1\.1 |\Z)")
SERVER_ERRORS = {b"500", b"501", b"502", b"504"}
PATHS = (
    *("/", "/ws", "/healthz", "/readyz", "/metrics", "/sessions", "/nowhere", "/../etc/passwd"),
    *(f"/sessions/{SESSION}", f"/sessions/{SESSION}/context?key=k&fork=main"),
    *(f"/sessions/{SESSION}/transcript?after=1&limit=2", f"/sessions/{SESSION}/messages?wait=0"),
    *(f"/sessions/{SESSION}/events", "/admin/keys", "/openapi.json", "/schema/v1/pvp.schema.json"),
)
DEFAULT_HEADERS = "Host: x\r\nAuthorization: Bearer TOKEN\r\n"
TOKEN_REQUEST = '{"id":"eve","type":"human","roles":["admin"]}'


def seeds() -> Iterator[bytes]:
    """Requests as they should be, and as smugglers write them."""
    for path in PATHS:
        yield f"GET {path} HTTP/1.1\r\n{DEFAULT_HEADERS}\r\n".encode()
    for method, path in (("POST", "/admin/tokens"), ("POST", f"/sessions/{SESSION}/messages")):
        head = f"{method} {path} HTTP/1.1\r\n{DEFAULT_HEADERS}"
        yield f"{head}Content-Length: {len(TOKEN_REQUEST)}\r\n\r\n{TOKEN_REQUEST}".encode()
        yield f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".encode()
        yield f"{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()
    yield f"DELETE /admin/tokens/x?force=true HTTP/1.1\r\n{DEFAULT_HEADERS}\r\n".encode()
    yield b"GET / HTTP/1.0\r\n\r\n"
    yield b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 3
    yield PIECE_SEPARATOR.join((b"GET /heal", b"thz HTTP/1.1\r\nHost:", b" x\r\n\r\n"))
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    for path in ("/ws", "/", "/x"):
        yield f"GET {path} HTTP/1.1\r\n{DEFAULT_HEADERS}{upgrade}{key}\r\n".encode()
    yield f"GET /ws HTTP/1.1\r\n{DEFAULT_HEADERS}{upgrade}\r\n".encode()
    expect = "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx"
    yield f"POST / HTTP/1.1\r\n{DEFAULT_HEADERS}{expect}".encode()


def make_runner(place: Path) -> FuzzInput:
    """One server for many of them."""
    houses = ServerPool(place)

    def ask(data: bytes) -> None:
        said = houses.exchange(data.split(PIECE_SEPARATOR)[:8])
        assert RESPONSE_START.match(said), f"no answer of HTTP: {said[:80]!r}"
        for status in STATUS.findall(said):
            assert status not in SERVER_ERRORS, said
            mark_reached(status)

    return ask


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """Everybody may know every session."""

    def known(room: Any, actor: Any) -> bool:
        return bool(room.exists)

    patch.setattr(sessions, "is_known_to", known)
