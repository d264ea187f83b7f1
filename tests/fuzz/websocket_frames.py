"""Bytes on a connection that speaks WebSocket: what comes back are frames, each a message."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.transports.websocket import connection
from tests.core.dialects.envelopes import PAYLOADS, envelope
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.support.in_process_server import PIECE_SEPARATOR, SESSION, ServerPool
from tests.fuzz.targets import FuzzInput
from tests.helpers.attacks.raw_socket import frame

UPGRADE_REQUEST = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
SIGNED_IN = UPGRADE_REQUEST + b"Authorization: Bearer TOKEN\r\n\r\n"
ANONYMOUS_UPGRADE = UPGRADE_REQUEST + b"\r\n"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
LONG_PAYLOAD_BYTES = 290


def seeds() -> Iterator[bytes]:
    """Messages line by line; behind a zero, frames as they are."""
    said = [
        json.dumps(envelope(name, session=SESSION, sender="mallory")).encode() for name in PAYLOADS
    ]
    yield from said
    yield b"\n".join(said[:6])
    hello = said[0]
    for first in (b"\x00", b"\x01"):
        yield first + frame(hello)
        yield first + frame(hello[:9], fin=False) + frame(b"x", PING) + frame(hello[9:], 0)
        yield first + frame(hello, size=1 << 40)
        yield first + b"\x81\x05hello" + b"\xc1" + frame(hello)[1:]
        yield first + frame(b"\xff\xfe") + frame(b"x", 2) + frame(b"\x03\xe8", CLOSE) + frame(b"x")
        yield first + PIECE_SEPARATOR.join((frame(hello)[:1], frame(hello)[1:9], frame(hello)[9:]))
        yield first + frame(b"x" * 200, PING) + frame(b"", PONG) + frame(b"x", 0) + frame(b"x", 11)


def make_runner(place: Path) -> FuzzInput:
    """One server for many of them."""
    houses = ServerPool(place)

    def talk(data: bytes) -> None:
        head = ANONYMOUS_UPGRADE if data[:1] == b"\x01" else SIGNED_IN
        said = houses.exchange([head, *pieces(data)])
        answer, _, frames = said.partition(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        for kind, payload in split_frames(frames):
            mark_reached(kind, payload[:4] if kind == CLOSE else b"")
            if kind == TEXT:
                heard = json.loads(payload)
                mark_reached(heard["type"], heard["payload"].get("code"))
                assert heard["payload"].get("code") != "INTERNAL_ERROR", heard

    return talk


def pieces(data: bytes) -> list[bytes]:
    """What is sent, write by write."""
    if data[:1] in {b"\x00", b"\x01"}:
        return data[1:].split(PIECE_SEPARATOR)[:8]
    return [b"".join(frame(line) for line in data.split(b"\n")[:8])]


def split_frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The server's frames; each is whole, unmasked and of a kind that there is."""
    while data:
        first, size = data[0], data[1]
        start = 2
        if size == 126:
            (size,), start = struct.unpack("!H", data[2:4]), 4
        elif size == 127:
            (size,), start = struct.unpack("!Q", data[2:10]), 10
        assert first in {0x80 | kind for kind in (TEXT, CLOSE, PING, PONG)}, first
        assert size <= len(data) - start, "half a frame"
        yield first & 0x0F, data[start : start + size]
        data = data[start + size :]


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """The length of what is long is one too many."""
    usual = connection.frame_header

    def careless(size: int) -> bytes:
        return usual(size + (size > LONG_PAYLOAD_BYTES))

    patch.setattr(connection, "frame_header", careless)
