"""Replies over HTTP: JSON that nobody keeps, and refusals as every route of ours says them."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from accord.core.dialects.codes import CODES
from accord.core.kernel.refusal import Refused, Why
from accord.engine.opener import unreadable
from accord.engine.ports import StoreError

# No cache keeps them, no browser guesses what they are.
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
Handler = Callable[[Request], Awaitable[Response]]


def answer(value: Any, status: int = 200) -> Response:
    """JSON."""
    return raw(msgspec.json.encode(value), status)


def raw(data: bytes | str, status: int = 200) -> Response:
    """JSON that is written already."""
    return Response(data, status, HEADERS, "application/json")


def refusal(no: Refused) -> Response:
    """The error, in the codes of PVP."""
    codes = CODES[no.why]
    problem = {"code": codes.pvp, "message": no.detail, "details": no.details or {}}
    return advised(answer({"error": problem}, codes.http), no)


def advised(response: Response, no: Refused) -> Response:
    """The response to this refusal, which says how to sign in, and when to ask again."""
    if no.why is Why.UNAUTHENTICATED:
        response.headers["www-authenticate"] = "Bearer"
    if no.details and "retry_after_ms" in no.details:
        response.headers["retry-after"] = str(-(-no.details["retry_after_ms"] // 1000))
    return response


def guarded(handler: Handler) -> Handler:
    """The handler with refusals and store failures answered properly."""

    async def guarded_handler(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as no:
            return refusal(no)
        except StoreError as error:
            return refusal(unreadable(error))

    return guarded_handler
