"""The certificate a server shows, and the key to it: read, checked, and ready for TLS."""

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography.x509 import Certificate, load_pem_x509_certificates

from accord.core.kernel.refusal import Refused, Why

OTHERS = 0o077
LARGEST_FILE = 1 << 20
MISMATCH = "KEY_VALUES_MISMATCH"


class Prepared(NamedTuple):
    """What TLS is spoken with, and until when it is good."""

    context: ssl.SSLContext
    ends: datetime


def prepared(cert: Path, key: Path, now: datetime | None = None) -> Prepared:
    """TLS 1.2 or newer with these files; refused with what to do where they cannot be used."""
    found = shown(cert, now or datetime.now(UTC))
    guarded(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Handshakes are dear to us and cheap for whoever asks for them over and over.
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(cert, key, password=no_password)
    except ssl.SSLError as no:
        raise unusable(cert, key, no) from None
    except (OSError, ValueError) as no:
        raise wrong(f"tls_key: {key} cannot be used: {no}") from None
    return Prepared(context, found.not_valid_after_utc)


def shown(cert: Path, now: datetime) -> Certificate:
    """The first certificate of the file, good at this moment."""
    data = content(cert, "tls_cert")
    try:
        found = load_pem_x509_certificates(data)[0]
    except ValueError:
        detail = f"tls_cert: {cert} is no certificate; name a PEM file, the server's own first"
        raise wrong(detail) from None
    if found.not_valid_after_utc <= now:
        until = f"{found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        raise wrong(f"tls_cert: {cert} expired on {until}; renew it")
    if found.not_valid_before_utc > now:
        since = f"{found.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        raise wrong(f"tls_cert: {cert} is good from {since} on; check this machine's clock")
    return found


def guarded(key: Path) -> None:
    """Readable, and by nobody else."""
    content(key, "tls_key")
    if os.name != "nt" and key.stat().st_mode & OTHERS:
        raise wrong(f"tls_key: others may read {key}; run: chmod 600 {key}")


def content(path: Path, setting: str) -> bytes:
    """What the file holds."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE)
    except OSError as no:
        detail = f"{setting}: {path} cannot be read: {no.strerror}; name a PEM file"
        raise wrong(detail) from None


def unusable(cert: Path, key: Path, no: ssl.SSLError) -> Refused:
    """Why the two do not make a pair."""
    if no.reason == MISMATCH:
        return wrong(f"tls_key: {key} is not the key of {cert}; name the two that belong together")
    what = "is no private key without a passphrase"
    return wrong(f"tls_key: {key} {what}; name a PEM file with an unencrypted key")


def no_password() -> str:
    """Nobody is there to be asked for one."""
    return ""


def wrong(detail: str) -> Refused:
    """The settings are at fault."""
    return Refused(Why.MALFORMED, detail)
