"""Refusals for unknown routes, wrong methods and unexpected errors."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.http import responses

NOT_FOUND, METHOD_NOT_ALLOWED = 404, 405
# Longer paths are cut in messages.
MAX_SHOWN_PATH = 100
WEBSOCKET_PATH = "/ws"
UPGRADE_HINT = "it speaks WebSocket, so send an upgrade request"
OPENAPI_HINT = "/openapi.json lists all endpoints"
INTERNAL_ERROR_TEXT = "Internal server error; try again. The server's log has the details"


def refusal_of_error(request: Request, error: Exception, hint: str) -> Refused:
    """The refusal for an error of the router or of a handler; `hint` says where to look instead."""
    status = error.status_code if isinstance(error, HTTPException) else None
    path = request.url.path[:MAX_SHOWN_PATH]
    if status == NOT_FOUND:
        return Refused(Reason.NO_ROUTE, f"There is no endpoint {path}; {hint}")
    if status == METHOD_NOT_ALLOWED:
        allowed = ", ".join(sorted(allow_header(error).get("Allow", "").split(", ")))
        return Refused(
            Reason.METHOD_NOT_ALLOWED, f"{path} does not allow {request.method}; use {allowed}"
        )
    return Refused(Reason.INTERNAL, INTERNAL_ERROR_TEXT)


async def handle_error(request: Request, error: Exception) -> Response:
    """Answer in the error codes of the API that was called."""
    path = request.url.path
    refusal = refusal_of_error(
        request, error, UPGRADE_HINT if path == WEBSOCKET_PATH else OPENAPI_HINT
    )
    response = responses.refusal_response_at(path, refusal)
    response.headers.update(allow_header(error))
    return response


def allow_header(error: Exception) -> Mapping[str, str]:
    """The `Allow` header of a 405."""
    return (error.headers or {}) if isinstance(error, HTTPException) else {}


EXCEPTION_HANDLERS: Mapping[Any, Any] = {HTTPException: handle_error, Exception: handle_error}
