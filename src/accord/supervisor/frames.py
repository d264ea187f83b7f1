"""What the relay and the link say to each other: frames of a kind, a length and a payload.

The relay holds the terminal and talks to nothing else; the link has the screen's model and the
server. Each may end without the other losing its step: a frame is taken whole or not at all.
"""

import json
import struct
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

HEADER = struct.Struct(">cI")
MAX_FRAME = 16 << 20


class FrameKind(Enum):
    """What a frame is about; the value is on the wire."""

    # from the relay
    BEGIN = b"B"  # what the link needs to know, and where the output begins
    OUTPUT = b"O"  # bytes of the host
    GAP = b"G"  # output was left out: the link was too slow
    SIZE = b"S"
    KEYS = b"K"  # how often a person typed, and when last
    TYPED = b"T"  # what came of a paste or an Enter
    END = b"E"  # the host has ended, and the terminal is restored
    # from the link
    PASTE = b"P"
    ENTER = b"N"
    ABANDON = b"A"


class Frame(NamedTuple):
    """One frame, decoded no further."""

    kind: FrameKind
    payload: bytes

    @property
    def fields(self) -> dict[str, Any]:
        """The payload of every kind but OUTPUT."""
        found: dict[str, Any] = json.loads(self.payload or b"{}")
        return found


def encoded(kind: FrameKind, payload: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return HEADER.pack(kind.value, len(payload)) + payload


def with_fields(kind: FrameKind, **fields: Any) -> bytes:
    """The bytes of a frame with these fields."""
    return encoded(kind, json.dumps(fields).encode())


class FrameReader:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that these bytes complete; raises ValueError for what is none."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise ValueError("a frame is too long")
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield Frame(FrameKind(kind), payload)
