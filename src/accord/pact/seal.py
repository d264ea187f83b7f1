"""Keys of seats: each in a file of its own in the data directory, never in a repository."""

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from accord.core.kernel.refusal import Refused, Why
from accord.core.work.signed import signed_bytes, with_signature

OTHERS = 0o077


class Seal:
    """The private key of one seat, if it is on this machine."""

    def __init__(self, home: Path, seat: str) -> None:
        self._file = home / "seats" / f"{seat}.key"

    def public(self) -> str:
        """The public key for the roster; empty where there is none."""
        key = self._private()
        return _text(key.public_key().public_bytes_raw()) if key else ""

    def make(self) -> str:
        """The public key, of a new pair where there was none."""
        if not (public := self.public()):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            raw = Ed25519PrivateKey.generate().private_bytes_raw()
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(base64.b64encode(raw) + b"\n")
            public = self.public()
        return public

    def sign(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event, signed."""
        key, data = self._private(), signed_bytes(event)
        if key is None or data is None:
            raise Refused(Why.MALFORMED, "This event cannot be signed")
        return with_signature(event, _text(key.sign(data)))

    def _private(self) -> Ed25519PrivateKey | None:
        try:
            text = self._file.read_bytes()
        except FileNotFoundError:
            return None
        if self._file.stat().st_mode & OTHERS:
            raise Refused(Why.FORBIDDEN, f"Others may read {self._file}; run: chmod 600 it")
        try:
            return Ed25519PrivateKey.from_private_bytes(base64.b64decode(text))
        except (ValueError, binascii.Error):
            raise Refused(Why.DAMAGED, f"{self._file} holds no key of a seat") from None


def verify(key: str, data: bytes, signature: str) -> bool:
    """Whether the key signed the data."""
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
        public.verify(base64.b64decode(signature, validate=True), data)
    except (ValueError, binascii.Error, InvalidSignature):
        return False
    return True


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
