"""Certificate checks of `accord doctor`: the configured one and the one the server presents."""

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from accord.cli.doctor.check_result import FAIL, OK, WARN, CheckResult
from accord.client.connection.tls_errors import CERT_EXPIRED_CODE, exception_chain
from accord.client.http_client import connect, proxy_of
from accord.core.kernel.refusal import Refused
from accord.show.text import escape_controls, format_duration

SUBJECT = "TLS"
EXPIRY_WARNING_S = 14 * 24 * 3600
RENEW_ADVICE = "Renew it; a running server loads the new one automatically."
RENEW_AND_LOG_ADVICE = f"{RENEW_ADVICE} If it does not, look for tls.refused in its log."
TRUST_ADVICE = "Use a host name that the certificate covers in ACCORD_URL; see docs/how-to/tls.md."


def check_configured(cert: Path, key: Path) -> CheckResult:
    """Whether the configured certificate and key can be used, and for how long."""
    from accord.settings.server.certificate import load_certificate  # slow to import, rarely needed

    try:
        ends = load_certificate(cert, key).expires_at.timestamp()
    except Refused as refusal:
        cure = "Correct it, or remove both tls_cert and tls_key."
        return CheckResult(FAIL, SUBJECT, escape_controls(refusal.detail), cure)
    return check_expiry(escape_controls(str(cert)), ends, RENEW_ADVICE)


def check_served(url: str) -> Iterator[CheckResult]:
    """How long the certificate that the server presents is still valid; unknown behind a proxy."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or proxy_of(url):
        return
    context = ssl.create_default_context()
    try:
        with (
            connect(url) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname) as opened,
        ):
            found = opened.getpeercert() or {}
    except OSError:
        return
    ends = ssl.cert_time_to_seconds(str(found["notAfter"]))
    yield check_expiry(f"the certificate of {escape_controls(url)}", ends, RENEW_AND_LOG_ADVICE)


def check_expiry(what: str, ends: float, cure: str) -> CheckResult:
    """How long it is still valid; a warning if it expires soon."""
    left = ends - time.time()
    says = f"{what} is valid for {format_duration(left)} more"
    return (
        CheckResult(WARN, SUBJECT, says, cure)
        if left < EXPIRY_WARNING_S
        else CheckResult(OK, SUBJECT, says)
    )


def certificate_advice(error: BaseException) -> str:
    """What to do about a certificate that is expired or not trusted."""
    expired = any(
        getattr(cause, "verify_code", None) == CERT_EXPIRED_CODE for cause in exception_chain(error)
    )
    return RENEW_AND_LOG_ADVICE if expired else TRUST_ADVICE
