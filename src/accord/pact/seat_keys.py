"""Private keys of seats, one file each in the data directory, never in a repository."""

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.signatures import bytes_to_sign, with_signature

GROUP_OTHER_BITS = 0o077


class SeatKey:
    """The key pair of one seat; the private key may not be on this machine."""

    def __init__(self, home: Path, seat: str) -> None:
        self._file = home / "seats" / f"{seat}.key"

    def public_key(self) -> str:
        """The public key for the roster; empty if there is no private key here."""
        key = self._read_private_key()
        return _encode_base64(key.public_key().public_bytes_raw()) if key else ""

    def create(self) -> str:
        """The public key; a new pair is created if there is none."""
        if not (public := self.public_key()):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            raw = Ed25519PrivateKey.generate().private_bytes_raw()
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(base64.b64encode(raw) + b"\n")
            public = self.public_key()
        return public

    def sign(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with this seat's signature."""
        key, data = self._read_private_key(), bytes_to_sign(event)
        if key is None or data is None:
            detail = "This event cannot be signed: its key is missing, or it is malformed"
            raise Refused(Reason.MALFORMED, detail)
        return with_signature(event, _encode_base64(key.sign(data)))

    def _read_private_key(self) -> Ed25519PrivateKey | None:
        try:
            text = self._file.read_bytes()
        except FileNotFoundError:
            return None
        if self._file.stat().st_mode & GROUP_OTHER_BITS:
            detail = f"Other users can read {self._file}; run `chmod 600 {self._file}`"
            raise Refused(Reason.FORBIDDEN, detail)
        try:
            return Ed25519PrivateKey.from_private_bytes(base64.b64decode(text))
        except (ValueError, binascii.Error):
            raise Refused(
                Reason.DAMAGED, f"{self._file} does not contain a valid seat key"
            ) from None


def verify_signature(key: str, data: bytes, signature: str) -> bool:
    """Whether the signature of the data verifies with this public key."""
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
        public.verify(base64.b64decode(signature, validate=True), data)
    except (ValueError, binascii.Error, InvalidSignature):
        return False
    return True


def _encode_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
