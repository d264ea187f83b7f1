"""The hash chain: each record's hash covers its own bytes and all records before it."""

from hashlib import sha256

import msgspec


def genesis_hash(stream: str) -> bytes:
    """The hash before the first record; depends on the stream, so records cannot be moved."""
    return sha256(b"accord:" + stream.encode()).digest()


def link_hash(before: bytes, body: bytes) -> bytes:
    """The hash of a record, from its predecessor's hash and its own stored bytes."""
    return sha256(before + body).digest()


class SignedHead(msgspec.Struct, frozen=True):
    """A signed statement: at `at` (ms), `stream` had `version` records, the last with `hash`.

    `total` counts the records of the whole log that are covered up to this signature, so that
    removing a signed stream is noticed; 0 in heads signed by versions that did not count.
    """

    stream: str
    version: int
    hash: bytes
    at: int
    key: str
    signature: bytes = b""
    total: int = 0

    def signed_bytes(self) -> bytes:
        """The first line separates this use of the key from all others."""
        words = (self.stream, str(self.version), self.hash.hex(), str(self.at), self.key)
        if self.total == 0:
            return "\n".join(("accord-head-v1", *words)).encode()
        return "\n".join(("accord-head-v2", *words, str(self.total))).encode()


class SignatureCoverage(msgspec.Struct, frozen=True):
    """How many records of a log are covered by signatures, and the head with the largest total."""

    records: int = 0
    head: SignedHead | None = None

    @property
    def signed_records(self) -> int:
        """The largest number of records that were ever covered."""
        return self.head.total if self.head else 0
