"""Bytes on a new connection: answers are whole, none is a failure of ours, none tells too much."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.views import sessions
from tests.fuzz.house import SESSION, SPLIT, Houses
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
ANSWERS = re.compile(rb"(?:HTTP/1\.1 |\Z)")
OURS = {b"500", b"501", b"502", b"504"}
PATHS = (
    *("/", "/ws", "/healthz", "/readyz", "/metrics", "/sessions", "/nowhere", "/../etc/passwd"),
    *(f"/sessions/{SESSION}", f"/sessions/{SESSION}/context?key=k&fork=main"),
    *(f"/sessions/{SESSION}/transcript?after=1&limit=2", f"/sessions/{SESSION}/messages?wait=0"),
    *(f"/sessions/{SESSION}/events", "/admin/keys", "/openapi.json", "/schema/v1/pvp.schema.json"),
)
USUAL = "Host: x\r\nAuthorization: Bearer TOKEN\r\n"
WISH = '{"id":"eve","type":"human","roles":["admin"]}'


def seeds() -> Iterator[bytes]:
    """Requests as they should be, and as smugglers write them."""
    for path in PATHS:
        yield f"GET {path} HTTP/1.1\r\n{USUAL}\r\n".encode()
    for method, path in (("POST", "/admin/tokens"), ("POST", f"/sessions/{SESSION}/messages")):
        head = f"{method} {path} HTTP/1.1\r\n{USUAL}"
        yield f"{head}Content-Length: {len(WISH)}\r\n\r\n{WISH}".encode()
        yield f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".encode()
        yield f"{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()
    yield f"DELETE /admin/tokens/x?force=true HTTP/1.1\r\n{USUAL}\r\n".encode()
    yield b"GET / HTTP/1.0\r\n\r\n"
    yield b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 3
    yield SPLIT.join((b"GET /heal", b"thz HTTP/1.1\r\nHost:", b" x\r\n\r\n"))
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    for path in ("/ws", "/", "/x"):
        yield f"GET {path} HTTP/1.1\r\n{USUAL}{upgrade}{key}\r\n".encode()
    yield f"GET /ws HTTP/1.1\r\n{USUAL}{upgrade}\r\n".encode()
    yield f"POST / HTTP/1.1\r\n{USUAL}Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx".encode()


def trial(place: Path) -> Trial:
    """One server for many of them."""
    houses = Houses(place)

    def ask(data: bytes) -> None:
        said = houses.hear(data.split(SPLIT)[:8])
        assert ANSWERS.match(said), f"no answer of HTTP: {said[:80]!r}"
        for status in STATUS.findall(said):
            assert status not in OURS, said
            reached(status)

    return ask


def plant(patch: pytest.MonkeyPatch) -> None:
    """Everybody may know every session."""

    def known(room: Any, actor: Any) -> bool:
        return bool(room.exists)

    patch.setattr(sessions, "known_to", known)
