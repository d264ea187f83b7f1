"""MSG: how a refusal of a thread method reads, over HTTP and over MCP."""

from typing import Any, NamedTuple

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.dialects.refusals import http_headers
from accord.core.kernel.refusal import Refused

ROOT = "/v1"
REQUEST_ID_PREFIX = "req_"
REQUEST_ID_HEADER = "x-request-id"


class MethodRefusal(NamedTuple):
    """A refusal as an HTTP status, headers and the error envelope (MSG 6)."""

    status: int
    headers: dict[str, str]
    body: dict[str, dict[str, Any]]


def is_method_path(path: str) -> bool:
    """Whether everything under this path is answered in the envelope of MSG."""
    return path == ROOT or path.startswith(f"{ROOT}/")


def error_envelope(refusal: Refused, request_id: str) -> dict[str, dict[str, Any]]:
    """The error envelope; `details` is there only if there are some."""
    error: dict[str, Any] = {
        "code": ERROR_CODES[refusal.reason].msg,
        "message": refusal.detail,
        "request_id": request_id,
    }
    if refusal.details:
        error["details"] = dict(refusal.details)
    return {"error": error}


def method_refusal(refusal: Refused, request_id: str) -> MethodRefusal:
    """The response to a refused request."""
    headers = http_headers(refusal) | {REQUEST_ID_HEADER: request_id}
    status = ERROR_CODES[refusal.reason].http
    return MethodRefusal(status, headers, error_envelope(refusal, request_id))
