"""The messages of the stream: entries that every copy applies in the same order by the same rule.

A message holds what one server wrote in one turn of its event loop. Each entry is decided alone: an
append whose expected version or ids do not fit changes nothing, and the others are stored.
"""

from collections.abc import Iterator, Sequence

import msgspec

from accord.core.kernel.integrity.hash_chain import SignedHead
from accord.engine.ports import NewerStoreError, Row

FORMAT = 1
# NATS accepts 1 MiB a message unless it is configured otherwise; headers count too.
PART_BYTES = 900_000
MAX_PARTS = 1000  # of an atomic batch


class StoredRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row without what its append says for all of them."""

    id: str
    body: bytes
    hash: bytes


class Append(msgspec.Struct, frozen=True, array_like=True, tag="a", gc=False):
    """Rows for one stream, right after version `expected`."""

    stream: str
    expected: int
    stored: list[StoredRow]

    @classmethod
    def of(cls, stream: str, expected: int, rows: Sequence[Row]) -> "Append":
        """The entry that stores these rows."""
        return cls(stream, expected, [StoredRow(row.id, row.body, row.hash) for row in rows])

    def rows(self) -> list[Row]:
        """The rows with their versions."""
        return [
            Row(self.stream, version, row.id, row.body, row.hash)
            for version, row in enumerate(self.stored, self.expected + 1)
        ]


class Head(msgspec.Struct, frozen=True, array_like=True, tag="h", gc=False):
    """A signed head."""

    stream: str
    version: int
    hash: bytes
    at: int
    key: str
    signature: bytes
    total: int

    @classmethod
    def of(cls, head: SignedHead) -> "Head":
        """The entry that stores this head."""
        values = (head.stream, head.version, head.hash, head.at, head.key, head.signature)
        return cls(*values, head.total)

    def signed_head(self) -> SignedHead:
        """The head."""
        values = (self.stream, self.version, self.hash, self.at, self.key, self.signature)
        return SignedHead(*values, self.total)


class Advance(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False):
    """A worker's cursor moves forward."""

    name: str
    position: int


Entry = Append | Head | Advance


class EntryMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message; `nonce` lets its sender recognise it, also if it was sent twice."""

    format: int
    nonce: str
    entries: list[Entry]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(EntryMessage)
_FORMAT_DECODER = msgspec.msgpack.Decoder(tuple[int, ...])


def encode(nonce: str, entries: list[Entry]) -> bytes:
    """The bytes of a message."""
    return _ENCODER.encode(EntryMessage(FORMAT, nonce, entries))


def decode(data: bytes, name: str) -> EntryMessage:
    """The message; NewerStoreError if this version cannot read it."""
    try:
        message = _DECODER.decode(data)
    except msgspec.DecodeError:
        message = None
    if message is None or message.format != FORMAT:
        detail = "has messages of a later Accord, or of another program; use a newer version"
        raise NewerStoreError(f"{name} {detail}", name)
    return message


def parts_of(data: bytes) -> Iterator[bytes]:
    """The message in pieces that NATS accepts."""
    for start in range(0, len(data), PART_BYTES):
        yield data[start : start + PART_BYTES]
