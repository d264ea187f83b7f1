"""The head of an upgrade to WebSocket: whether it is one, and as picows wants to read it."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

VERSION = "13"
KEY_BYTES = 16
# What anybody looks at; the rest of what browsers and proxies send is not handed on.
READ = frozenset({b"host", b"origin", b"authorization"})
OURS = b"sec-websocket-"
# More of them than anybody needs, and fewer than picows takes.
MOST_READ = 64
BODY = "An upgrade has no body"
KEY = f"An upgrade has one Sec-WebSocket-Key, {KEY_BYTES} bytes in base64"
SPOKEN = f"Version {VERSION} of WebSocket is spoken here"
# What an answer has to say beside its sentence.
MORE: Mapping[HTTPStatus, str] = {
    HTTPStatus.UPGRADE_REQUIRED: f"upgrade: websocket\r\nsec-websocket-version: {VERSION}\r\n",
}

Headers = list[tuple[bytes, bytes]]
Trouble = tuple[HTTPStatus, str]


def trouble(scope: Mapping[str, Any]) -> Trouble | None:
    """Why this request cannot be an upgrade, whoever sends it."""
    headers: Headers = scope["headers"]
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    if scope["method"] != "GET":
        return HTTPStatus.BAD_REQUEST, f"An upgrade is asked for with GET, not {scope['method']}"
    if scope["http_version"] != "1.1":
        return HTTPStatus.BAD_REQUEST, "An upgrade is asked for in HTTP/1.1"
    if b"transfer-encoding" in found or any(
        v.strip(b"0") for v in found.get(b"content-length", ())
    ):
        return HTTPStatus.BAD_REQUEST, BODY
    if found.get(b"sec-websocket-version") != [VERSION.encode()]:
        return HTTPStatus.UPGRADE_REQUIRED, SPOKEN
    keys = found.get(b"sec-websocket-key", [])
    if len(keys) != 1 or not is_key(keys[0]):
        return HTTPStatus.BAD_REQUEST, KEY
    if len(list(read(headers))) > MOST_READ:
        why = f"An upgrade may have {MOST_READ} headers that are read"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why
    return None


def is_key(key: bytes) -> bool:
    """Whether it is what a client has to make up for each connection."""
    try:
        return len(base64.b64decode(key, validate=True)) == KEY_BYTES
    except binascii.Error:
        return False


def plain(headers: Headers) -> Headers:
    """The head without what nobody reads.

    Browsers and proxies list more in `Connection` than the upgrade; picows wants it alone.
    """
    return [(b"connection", b"upgrade"), (b"upgrade", b"websocket"), *read(headers)]


def read(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The headers that say who asks for what."""
    return (each for each in headers if each[0] in READ or each[0].startswith(OURS))
