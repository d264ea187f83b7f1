"""What is wrong with a connection that TLS did not come about on, in a sentence that helps."""

import ssl
from collections.abc import Iterator

# What OpenSSL calls it when whoever answers does not speak TLS.
NO_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
)
EXPIRED, NOT_YET = 10, 9
OTHER_NAME = frozenset({62, 64})
AUTHORITY = "point SSL_CERT_FILE at the certificate of your own authority"


def explained(error: BaseException, base: str) -> str | None:
    """The sentence; None where TLS has nothing to do with it. `base` is the address asked."""
    for each in chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return distrusted(each, base)
        if isinstance(each, ssl.SSLError):
            return broken(each, base)
    return None


def is_distrusted(error: BaseException) -> bool:
    """Whether the certificate will not do, which no other attempt changes."""
    return any(isinstance(each, ssl.SSLCertVerificationError) for each in chain(error))


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        inner = getattr(seen, "reason", None)
        seen = inner if isinstance(inner, BaseException) else seen.__cause__


def distrusted(error: ssl.SSLCertVerificationError, base: str) -> str:
    """Why the certificate will not do."""
    if error.verify_code in OTHER_NAME:
        what = error.verify_message.rstrip(".")
        return f"The certificate at {base} is for another name ({what}); use the name it is for"
    if error.verify_code == EXPIRED:
        return f"The certificate at {base} has expired; whoever runs the server renews it"
    if error.verify_code == NOT_YET:
        return f"The certificate at {base} is not good yet; compare the clocks of both machines"
    what = error.verify_message.rstrip(".")
    return f"The certificate at {base} is not trusted here ({what}); {AUTHORITY}"


def broken(error: ssl.SSLError, base: str) -> str:
    """Why there was no handshake."""
    if error.reason in NO_TLS:
        plain = base.replace("https://", "http://", 1).replace("wss://", "ws://", 1)
        return f"What answers at {base} does not speak TLS; if that is meant, write {plain}"
    return f"TLS with {base} did not come about: {error.reason or error}"
