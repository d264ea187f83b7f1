"""A cut: the signed statement that the beginning of a stream was removed on purpose."""

from hashlib import sha256

import msgspec

from accord.core.kernel.log import Instant


class Cut(msgspec.Struct, frozen=True):
    """Records 1 to `version` of `stream` were removed; the chain goes on from `hash`.

    `state` is what is kept of them, so that the rest can be folded.
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

    def claim(self) -> bytes:
        """The bytes that are signed: whatever a reader relies on, and no way to read it twice."""
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
