"""The hash chain: each row of a stream seals its own bytes together with all before it."""

from hashlib import sha256

import msgspec


def genesis(stream: str) -> bytes:
    """What the first row of a stream follows; differs by stream, so rows cannot change places."""
    return sha256(b"accord:" + stream.encode()).digest()


def link(before: bytes, body: bytes) -> bytes:
    """The hash of a row: its predecessor's hash and its own stored bytes."""
    return sha256(before + body).digest()


class Head(msgspec.Struct, frozen=True):
    """A signed statement: at `at` (ms), `stream` had `version` rows that ended in `hash`.

    `total` counts the records of the whole log that signatures cover with this one, so that
    none can be taken away alone; 0 in what was signed before this was counted.
    """

    stream: str
    version: int
    hash: bytes
    at: int
    key: str
    signature: bytes = b""
    total: int = 0

    def claim(self) -> bytes:
        """The bytes that are signed; the first line keeps other uses of the key apart."""
        words = (self.stream, str(self.version), self.hash.hex(), str(self.at), self.key)
        if self.total == 0:
            return "\n".join(("accord-head-v1", *words)).encode()
        return "\n".join(("accord-head-v2", *words, str(self.total))).encode()


class Covered(msgspec.Struct, frozen=True):
    """How many records of a log its signatures cover, and the one that says most of it."""

    records: int = 0
    claim: Head | None = None

    @property
    def claimed(self) -> int:
        """How many records were signed once, by the largest count there is."""
        return self.claim.total if self.claim else 0
