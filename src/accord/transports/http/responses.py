"""JSON responses, including refusals."""

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from accord.core.dialects import msg
from accord.core.dialects.refusals import JSON_HEADERS, CodeSet, http_refusal
from accord.core.kernel.refusal import Refused
from accord.core.kernel.ulid import ulid
from accord.engine.ports import StoreError
from accord.engine.streams.stream_cache import unreadable_refusal

__all__ = [
    "JSON_HEADERS",
    "json_response",
    "method_refusal_response",
    "new_request_id",
    "raw_json_response",
    "refusal_response",
    "refusal_response_at",
    "with_refusals",
]

ADMIN_ROOT = "/admin"
Handler = Callable[[Request], Awaitable[Response]]


def json_response(value: Any, status: int = 200) -> Response:
    return raw_json_response(msgspec.json.encode(value), status)


def raw_json_response(data: bytes | str, status: int = 200) -> Response:
    """A response with JSON that is already encoded."""
    return Response(data, status, JSON_HEADERS, "application/json")


def refusal_response(refusal: Refused, codes: CodeSet = "pvp") -> Response:
    """A refusal as an HTTP response."""
    rendered = http_refusal(refusal, codes)
    content = msgspec.json.encode(rendered.body)
    return Response(content, rendered.status, rendered.headers, "application/json")


def refusal_response_at(path: str, refusal: Refused) -> Response:
    """A refusal in the dialect of what was asked for; under `/v1` with the id of the request."""
    if not msg.is_method_path(path):
        under_admin = path == ADMIN_ROOT or path.startswith(f"{ADMIN_ROOT}/")
        return refusal_response(refusal, "msg" if under_admin else "pvp")
    return method_refusal_response(refusal, new_request_id())


def new_request_id() -> str:
    """An id that a caller can quote and that the server's log has too."""
    return msg.REQUEST_ID_PREFIX + ulid(time.time_ns() // 1_000_000, os.urandom(10))


def method_refusal_response(refusal: Refused, request_id: str) -> Response:
    """A refusal in the error envelope of MSG."""
    status, headers, body = msg.method_refusal(refusal, request_id)
    return Response(msgspec.json.encode(body), status, headers, "application/json")


def with_refusals(handler: Handler) -> Handler:
    """The handler, with refusals and storage errors turned into responses."""

    async def guarded_handler(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as refusal:
            return refusal_response(refusal)
        except StoreError as error:
            return refusal_response(unreadable_refusal(error))

    return guarded_handler
