"""Responses to bytes that are not a request, or not one that is read."""

from http import HTTPStatus

import msgspec

from accord.core.dialects.refusals import http_refusal
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.edge import websocket_upgrade

# Refusals that happen before there is a request have statuses of their own.
REASON_BY_STATUS = {
    HTTPStatus.BAD_REQUEST: Reason.MALFORMED,
    HTTPStatus.REQUEST_TIMEOUT: Reason.TIMED_OUT,
    HTTPStatus.UPGRADE_REQUIRED: Reason.UNSUPPORTED_VERSION,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: Reason.TOO_LARGE,
    HTTPStatus.SERVICE_UNAVAILABLE: Reason.UNAVAILABLE,
}


def encode_refusal(status: HTTPStatus, why: str) -> bytes:
    """The whole response to bytes that are not a request, or not one that is read."""
    rendered = http_refusal(Refused(REASON_BY_STATUS[status], why))
    body = msgspec.json.encode(rendered.body)
    headers = {
        **rendered.headers,
        **websocket_upgrade.EXTRA_HEADERS.get(status, {}),
        "connection": "close",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    lines = (f"{name}: {value}" for name, value in headers.items())
    head = "\r\n".join((f"HTTP/1.1 {status.value} {status.phrase}", *lines, "", ""))
    return head.encode("ascii") + body
