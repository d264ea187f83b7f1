"""What `accord doctor` says of certificates: the one that is named here, and the one on show."""

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from accord.cli.address import port_of
from accord.cli.findings import FAIL, OK, WARN, Check
from accord.client.trouble import EXPIRED, chain
from accord.core.kernel.refusal import Refused
from accord.show.text import safe, span

ABOUT = "TLS"
SOON_S = 14 * 24 * 3600
PATIENCE_S = 5.0
RENEW = "Renew it; a running server takes the new one by itself."
RENEWED = f"{RENEW} Where it does not, its log has tls.refused, and why."
SECURELY = "Set ACCORD_URL to a name of the certificate; see docs/how-to/tls.md."


def named(cert: Path, key: Path) -> Check:
    """Whether TLS can be spoken with these, and for how long."""
    from accord.config.certificate import prepared  # few speak it

    try:
        ends = prepared(cert, key).ends.timestamp()
    except Refused as no:
        cure = "Correct it, or set neither tls_cert nor tls_key."
        return Check(FAIL, ABOUT, safe(no.detail), cure)
    return lasting(safe(str(cert)), ends, RENEW)


def shown(url: str) -> Iterator[Check]:
    """For how long the one is good that the server shows; of one behind a proxy, nothing."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return
    context, where = ssl.create_default_context(), (parts.hostname, port_of(url))
    try:
        with (
            socket.create_connection(where, PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname) as opened,
        ):
            found = opened.getpeercert() or {}
    except OSError:
        return
    ends = ssl.cert_time_to_seconds(str(found["notAfter"]))
    yield lasting(f"what {safe(url)} shows", ends, RENEWED)


def lasting(what: str, ends: float, cure: str) -> Check:
    """For how long it is good; soon is told in time."""
    left = ends - time.time()
    said = f"{what} is good for {span(left)} more"
    return Check(WARN, ABOUT, said, cure) if left < SOON_S else Check(OK, ABOUT, said)


def remedy(error: BaseException) -> str:
    """What to do about a certificate that is not trusted."""
    expired = any(getattr(each, "verify_code", None) == EXPIRED for each in chain(error))
    return RENEWED if expired else SECURELY
