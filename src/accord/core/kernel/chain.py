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
    """A signed statement: at `at` (ms), `stream` had `version` rows that ended in `hash`."""

    stream: str
    version: int
    hash: bytes
    at: int
    key: str
    signature: bytes = b""

    def claim(self) -> bytes:
        """The bytes that are signed; the first line keeps other uses of the key apart."""
        words = ("accord-head-v1", self.stream, str(self.version), self.hash.hex(), str(self.at))
        return "\n".join((*words, self.key)).encode()
