"""How long request bodies may take to arrive, and how large they may be."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.requests import Request

from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.refusal import Refused

Body = TypeVar("Body")
BODY_TIMEOUT_LIMIT = "body_seconds"
# Of a body that is too large, so much is read and dropped, so that the sender gets the error.
MAX_DISCARDED_BYTES = 16 << 20
ReserveBytes = Callable[[int], None]


async def read_within(body: Awaitable[Body], seconds: int) -> Body:
    """The body; raises Refused when it is not complete within this many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await body
    except TimeoutError:
        raise limit_exceeded(
            BODY_TIMEOUT_LIMIT, seconds, f"The request body did not arrive within {seconds} s"
        ) from None


async def collect_body(request: Request, max_bytes: int) -> bytes:
    """The body; raises Refused when it is larger."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise limit_exceeded("body", max_bytes, f"The body is larger than {max_bytes} bytes")
    return bytes(body)


async def collect_long_body(
    request: Request, max_bytes: int, reserve: ReserveBytes, refusal: Refused
) -> bytes:
    """The body; raises the refusal when it is larger. `reserve` is called before bytes are kept."""
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= max_bytes:
            reserve(len(chunk))
            body += chunk
        elif size > MAX_DISCARDED_BYTES:
            break
        else:
            body.clear()
    if size > max_bytes:
        raise refusal
    return bytes(body)
