"""Exponential backoff between connection attempts."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

# The first retry comes within this many seconds; the bound doubles for each later one.
FIRST_DELAY_S = 0.2
MAX_DELAY_S = 5.0
# Only a connection that lasted this long resets the backoff: a server may accept and drop at once.
STEADY_AFTER_S = 2.0
# Beyond this, doubling would only overflow: the maximum delay was reached long before.
MAX_DOUBLINGS = 30
# A server may ask for a longer delay than our maximum, up to this one.
MAX_RETRY_AFTER_S = 60.0


def max_delay(
    attempt: int, first_delay_s: float = FIRST_DELAY_S, max_delay_s: float = MAX_DELAY_S
) -> float:
    """The upper bound of the delay before attempt number `attempt`, counted from 0."""
    return min(max_delay_s, first_delay_s * 2.0 ** min(attempt, MAX_DOUBLINGS))


class RetryPolicy(NamedTuple):
    """Exponential backoff with jitter, so that many clients do not reconnect all at once."""

    first_delay_s: float = FIRST_DELAY_S
    max_delay_s: float = MAX_DELAY_S
    steady_after_s: float = STEADY_AFTER_S
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic

    def delay(self, attempt: int, retry_after_s: float = 0.0) -> float:
        """Seconds to wait, including those that the server asked for.

        The first delay is anywhere up to its bound, each later one in the upper half of it: if all
        could be short, a short outage would use up many attempts and make the next delay long.
        """
        upper = max_delay(attempt, self.first_delay_s, self.max_delay_s)
        lower = upper / 2 if attempt else 0.0
        requested = min(max(retry_after_s, 0.0), MAX_RETRY_AFTER_S)
        return requested + lower + self.jitter() * (upper - lower)


class Backoff:
    """Counts the failed attempts of one client and waits before the next."""

    def __init__(self, retry: RetryPolicy) -> None:
        self._retry = retry
        self._attempt = 0
        self._connected_at: float | None = None

    def on_connected(self) -> None:
        """Note that the connection is open."""
        if self._connected_at is None:
            self._connected_at = self._retry.clock()

    async def wait(self, retry_after_s: float = 0.0) -> None:
        """Wait before the next attempt, after a connection was lost or could not be opened."""
        connected_at, self._connected_at = self._connected_at, None
        if (
            connected_at is not None
            and self._retry.clock() - connected_at >= self._retry.steady_after_s
        ):
            self._attempt = 0
        delay = self._retry.delay(self._attempt, retry_after_s)
        self._attempt += 1
        await self._retry.sleep(delay)
