"""One-time codes and proofs: random bits, hashes and signatures around the rules of `people`."""

import base64
import binascii
import secrets
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from accord.core.kernel.refusal import Reason, Refused
from accord.core.people.device_proofs import ProofStatement

CODE_BYTES = 16
KEY_BYTES = 32
# Hashes of codes are hashes of nothing else.
CODE_HASH_PREFIX = b"accord-code-v1\n"


def new_code() -> str:
    """128 random bits, in lower-case base32 so that they can be typed."""
    return base64.b32encode(secrets.token_bytes(CODE_BYTES)).decode().rstrip("=").lower()


def code_digest(code: str) -> str:
    """What is stored of a code. It has too many random bits to be guessed from this."""
    return sha256(CODE_HASH_PREFIX + code.strip().lower().encode()).hexdigest()


def ensure_public_key(text: str) -> str:
    """The key in canonical base64; raises Refused unless it is an Ed25519 public key."""
    try:
        raw = base64.b64decode(text, validate=True)
        Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, binascii.Error):
        detail = f"public_key must be an Ed25519 public key: {KEY_BYTES} bytes in base64"
        raise Refused(Reason.MALFORMED, detail) from None
    return base64.b64encode(raw).decode()


def is_proof(public_key: str, statement: ProofStatement, signature: str) -> bool:
    """Whether the signature of the statement verifies with this device's key."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), statement.to_bytes())
    except (ValueError, binascii.Error, InvalidSignature):
        return False
    return True
