"""The bodies of requests: nobody is waited for without an end."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from accord.core.kernel.limits import reached

Body = TypeVar("Body")
NAME = "body_seconds"


async def in_time(body: Awaitable[Body], seconds: int) -> Body:
    """The body, if it is here within so many seconds; raises Refused."""
    try:
        async with asyncio.timeout(seconds):
            return await body
    except TimeoutError:
        raise reached(NAME, seconds, f"The body was not here within {seconds} s") from None
