"""Reading request bodies with a timeout."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from accord.core.kernel.limits import limit_exceeded

Body = TypeVar("Body")
BODY_TIMEOUT_LIMIT = "body_seconds"


async def read_within(body: Awaitable[Body], seconds: int) -> Body:
    """The body; raises Refused when it is not complete within this many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await body
    except TimeoutError:
        raise limit_exceeded(
            BODY_TIMEOUT_LIMIT, seconds, f"The request body did not arrive within {seconds} s"
        ) from None
