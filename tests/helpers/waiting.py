"""Waits for a condition instead of for a time."""

import asyncio
import time
from collections.abc import Callable

TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.005


async def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; fails after the timeout."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(POLL_INTERVAL_S)
