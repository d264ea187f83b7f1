"""What no route takes, and what breaks on the way: told like every other refusal."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from accord.core.kernel.refusal import Refused, Why

from . import operator, replies

NOT_FOUND, METHOD_NOT_ALLOWED = 404, 405
# Of a longer path nobody needs the end to see what was meant.
MOST_SHOWN = 100
SOCKET = "/ws"
SPOKEN = "it speaks WebSocket, so ask for an upgrade"
LISTED = "/openapi.json lists what there is"
BROKEN = "Something went wrong in the server, and its log says what; try again"


def why_not(request: Request, error: Exception, there_is: str) -> Refused:
    """The refusal behind what the router, or a handler, raised; `there_is` tells where to look."""
    status = error.status_code if isinstance(error, HTTPException) else None
    path = request.url.path[:MOST_SHOWN]
    if status == NOT_FOUND:
        return Refused(Why.NO_ROUTE, f"There is nothing at {path}; {there_is}")
    if status == METHOD_NOT_ALLOWED:
        takes = ", ".join(sorted(allowed(error).get("Allow", "").split(", ")))
        return Refused(Why.METHOD, f"{path} does not take {request.method}; it takes {takes}")
    return Refused(Why.INTERNAL, BROKEN)


async def answered(request: Request, error: Exception) -> Response:
    """In the codes of the place that was asked."""
    path = request.url.path
    no = why_not(request, error, SPOKEN if path == SOCKET else LISTED)
    under_admin = path == operator.ROOT or path.startswith(f"{operator.ROOT}/")
    response = operator.refusal(no) if under_admin else replies.refusal(no)
    response.headers.update(allowed(error))
    return response


def allowed(error: Exception) -> Mapping[str, str]:
    """Which methods would do, as HTTP wants it told."""
    return (error.headers or {}) if isinstance(error, HTTPException) else {}


HANDLERS: Mapping[Any, Any] = {HTTPException: answered, Exception: answered}
