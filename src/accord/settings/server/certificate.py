"""Loading and checking the server's TLS certificate and key."""

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography.x509 import Certificate, load_pem_x509_certificates

from accord.core.kernel.refusal import Reason, Refused

GROUP_OTHER_BITS = 0o077
MAX_PEM_BYTES = 1 << 20
KEY_MISMATCH_REASON = "KEY_VALUES_MISMATCH"


class LoadedCertificate(NamedTuple):
    """A TLS context and the expiry of its certificate."""

    context: ssl.SSLContext
    expires_at: datetime


def load_certificate(cert: Path, key: Path, now: datetime | None = None) -> LoadedCertificate:
    """A context for TLS 1.2 or newer.

    Raises Refused with what to do if the files cannot be used.
    """
    certificate = read_certificate(cert, now or datetime.now(UTC))
    ensure_key_private(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A handshake is expensive for the server and cheap for a client that repeats it.
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(cert, key, password=no_password)
    except ssl.SSLError as error:
        raise pair_refusal(cert, key, error) from None
    except (OSError, ValueError) as error:
        raise malformed(f"tls_key: {key} cannot be used: {error}") from None
    return LoadedCertificate(context, certificate.not_valid_after_utc)


def read_certificate(cert: Path, now: datetime) -> Certificate:
    """The file's first certificate, if it is valid now; raises Refused."""
    data = read_pem(cert, "tls_cert")
    try:
        certificate = load_pem_x509_certificates(data)[0]
    except ValueError:
        detail = (
            f"tls_cert: {cert} is not a certificate; use a PEM file with the server's own first"
        )
        raise malformed(detail) from None
    if certificate.not_valid_after_utc <= now:
        until = f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        raise malformed(f"tls_cert: {cert} expired on {until}; renew it")
    if certificate.not_valid_before_utc > now:
        since = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        raise malformed(f"tls_cert: {cert} is not valid before {since}; check this machine's clock")
    return certificate


def ensure_key_private(key: Path) -> None:
    """Ensure that the key is readable, and only by its owner."""
    read_pem(key, "tls_key")
    if os.name != "nt" and key.stat().st_mode & GROUP_OTHER_BITS:
        raise malformed(f"tls_key: other users can read {key}; run: chmod 600 {key}")


def read_pem(path: Path, setting: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_PEM_BYTES)
    except OSError as error:
        detail = f"{setting}: {path} cannot be read: {error.strerror}; use a PEM file"
        raise malformed(detail) from None


def pair_refusal(cert: Path, key: Path, error: ssl.SSLError) -> Refused:
    """Why the key cannot be used with the certificate."""
    if error.reason == KEY_MISMATCH_REASON:
        return malformed(
            f"tls_key: {key} does not match {cert}; use the key that belongs to the certificate"
        )
    what = "is not a private key, or needs a passphrase"
    return malformed(f"tls_key: {key} {what}; use a PEM file with an unencrypted key")


def no_password() -> str:
    """Makes an encrypted key fail instead of prompting for its passphrase."""
    return ""


def malformed(detail: str) -> Refused:
    return Refused(Reason.MALFORMED, detail)
