"""Validating a WebSocket upgrade request, and reducing its head to what picows accepts."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

WEBSOCKET_VERSION = "13"
KEY_BYTES = 16
# Only these headers are used; the rest of what browsers and proxies send is dropped.
FORWARDED_HEADERS = frozenset({b"host", b"origin", b"authorization", b"cookie"})
WEBSOCKET_HEADER_PREFIX = b"sec-websocket-"
# More than any client needs, and fewer than picows accepts.
MAX_FORWARDED_HEADERS = 64
NO_BODY_REFUSAL = "A WebSocket upgrade request must not have a body"
KEY_REFUSAL = f"Send one Sec-WebSocket-Key with {KEY_BYTES} bytes in base64"
VERSION_REFUSAL = f"Only WebSocket version {WEBSOCKET_VERSION} is supported"
# Headers that a status requires.
EXTRA_HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UPGRADE_REQUIRED: {
        "upgrade": "websocket",
        "sec-websocket-version": WEBSOCKET_VERSION,
    },
}

Headers = list[tuple[bytes, bytes]]
UpgradeError = tuple[HTTPStatus, str]


def find_upgrade_error(scope: Mapping[str, Any]) -> UpgradeError | None:
    """Why this request cannot be an upgrade, as status and message; None when it can."""
    headers: Headers = scope["headers"]
    values_by_name: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values_by_name.setdefault(name, []).append(value)
    if scope["method"] != "GET":
        return HTTPStatus.BAD_REQUEST, f"Upgrade with GET, not {scope['method']}"
    if scope["http_version"] != "1.1":
        return HTTPStatus.BAD_REQUEST, "Upgrade with HTTP/1.1"
    if b"transfer-encoding" in values_by_name or any(
        v.strip(b"0") for v in values_by_name.get(b"content-length", ())
    ):
        return HTTPStatus.BAD_REQUEST, NO_BODY_REFUSAL
    if values_by_name.get(b"sec-websocket-version") != [WEBSOCKET_VERSION.encode()]:
        return HTTPStatus.UPGRADE_REQUIRED, VERSION_REFUSAL
    keys = values_by_name.get(b"sec-websocket-key", [])
    if len(keys) != 1 or not is_websocket_key(keys[0]):
        return HTTPStatus.BAD_REQUEST, KEY_REFUSAL
    if len(list(forwarded_headers(headers))) > MAX_FORWARDED_HEADERS:
        why = f"An upgrade may have at most {MAX_FORWARDED_HEADERS} relevant headers"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why
    return None


def is_websocket_key(key: bytes) -> bool:
    """Whether the key is 16 bytes of base64 (RFC 6455 4.1)."""
    try:
        return len(base64.b64decode(key, validate=True)) == KEY_BYTES
    except binascii.Error:
        return False


def normalized_headers(headers: Headers) -> Headers:
    """The upgrade's headers without those that nothing reads.

    Browsers and proxies list more in `Connection` than `upgrade`; picows accepts only that.
    """
    return [(b"connection", b"upgrade"), (b"upgrade", b"websocket"), *forwarded_headers(headers)]


def forwarded_headers(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The headers that matter: host, origin, credentials and WebSocket's own."""
    return (
        header
        for header in headers
        if header[0] in FORWARDED_HEADERS or header[0].startswith(WEBSOCKET_HEADER_PREFIX)
    )
