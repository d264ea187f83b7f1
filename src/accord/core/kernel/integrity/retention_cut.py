"""Retention cuts: signed statements that the beginning of a stream was removed on purpose."""

from hashlib import sha256

import msgspec

from accord.core.kernel.messages import Instant


class RetentionCut(msgspec.Struct, frozen=True):
    """Records 1 to `version` of `stream` were removed; the hash chain continues from `hash`.

    `state` is the folded state of the removed records, so that the rest can still be folded.
    """

    stream: str
    version: int
    hash: bytes
    at: Instant
    by: str
    reason: str
    state: bytes
    key: str
    signature: bytes = b""

    def signed_bytes(self) -> bytes:
        """Everything a reader relies on, encoded so that no two cuts share the same bytes."""
        fields = (
            ("stream", self.stream),
            ("version", self.version),
            ("hash", self.hash.hex()),
            ("at", self.at),
            ("by", self.by),
            ("reason", self.reason),
            ("state", sha256(self.state).hexdigest()),
            ("key", self.key),
        )
        return b"accord-cut-v1\n" + msgspec.json.encode(dict(fields))
