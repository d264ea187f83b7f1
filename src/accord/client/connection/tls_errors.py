"""Explains TLS failures in a sentence that says what to do."""

import ssl
from collections.abc import Iterator

# OpenSSL's reasons when the other side does not speak TLS.
NOT_TLS_REASONS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
)
CERT_EXPIRED_CODE, CERT_NOT_YET_VALID_CODE = 10, 9
HOSTNAME_MISMATCH_CODES = frozenset({62, 64})
OWN_CA_HINT = "if you run your own CA, set SSL_CERT_FILE to its certificate"


def explain_tls_error(error: BaseException, base: str) -> str | None:
    """The explanation, or None if the failure is not about TLS; `base` is the server's URL."""
    for cause in exception_chain(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return explain_certificate_error(cause, base)
        if isinstance(cause, ssl.SSLError):
            return explain_handshake_error(cause, base)
    return None


def is_certificate_error(error: BaseException) -> bool:
    """Whether the certificate was refused, which a retry does not change."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in exception_chain(error))


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, including the `reason` of urllib's errors."""
    current: BaseException | None = error
    while current is not None:
        yield current
        reason = getattr(current, "reason", None)
        current = reason if isinstance(reason, BaseException) else current.__cause__


def explain_certificate_error(error: ssl.SSLCertVerificationError, base: str) -> str:
    """Why the certificate was refused, and what to do about it."""
    if error.verify_code in HOSTNAME_MISMATCH_CODES:
        what = error.verify_message.rstrip(".")
        return f"The certificate at {base} was issued for another name ({what}); use that name"
    if error.verify_code == CERT_EXPIRED_CODE:
        return f"The certificate at {base} has expired; ask the server's operator to renew it"
    if error.verify_code == CERT_NOT_YET_VALID_CODE:
        return f"The certificate at {base} is not valid yet; check the clocks of both machines"
    what = error.verify_message.rstrip(".")
    return f"The certificate at {base} is not trusted ({what}); {OWN_CA_HINT}"


def explain_handshake_error(error: ssl.SSLError, base: str) -> str:
    """Why the handshake failed, and what to do about it."""
    if error.reason in NOT_TLS_REASONS:
        plain = base.replace("https://", "http://", 1).replace("wss://", "ws://", 1)
        return f"The server at {base} does not use TLS; if that is intended, use {plain}"
    return f"The TLS handshake with {base} failed: {error.reason or error}"
