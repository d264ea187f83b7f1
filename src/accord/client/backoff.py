"""How long to wait before the next attempt, and when to begin anew."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

# The first attempt comes within so many seconds, each later one after up to twice as long.
FLOOR = 0.2
CAP = 5.0
# After a connection that held so long the waits begin anew; one that ends at once does not count.
STEADY = 2.0
# Twice as long each time; past this many attempts every bound is reached.
MOST_DOUBLINGS = 30
# A server may ask for more patience than one has of oneself, but not for any.
LONGEST_HINT = 60.0


def ceiling(attempt: int, floor: float = FLOOR, cap: float = CAP) -> float:
    """The longest wait before attempt number `attempt`, counted from 0."""
    return min(cap, floor * 2.0 ** min(attempt, MOST_DOUBLINGS))


class Retry(NamedTuple):
    """Exponential back-off: a crowd that lost its server comes back soon, and spread out."""

    floor: float = FLOOR
    cap: float = CAP
    steady: float = STEADY
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic

    def delay(self, attempt: int, hint: float = 0.0) -> float:
        """Seconds to wait, on top of those that the server asked for.

        The first wait is anywhere up to its ceiling, each later one in the upper half: where all
        could be short, a second of absence would use up so many that the next is a long one.
        """
        longest = ceiling(attempt, self.floor, self.cap)
        shortest = longest / 2 if attempt else 0.0
        asked = min(max(hint, 0.0), LONGEST_HINT)
        return asked + shortest + self.chance() * (longest - shortest)


class Backoff:
    """The waits of whoever keeps a connection, from one loss to the next."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._attempt = 0
        self._since: float | None = None

    def opened(self) -> None:
        """There is a connection, or there still is."""
        if self._since is None:
            self._since = self._retry.clock()

    async def wait(self, hint: float = 0.0) -> None:
        """It is lost, or did not come about: wait for the next attempt."""
        since, self._since = self._since, None
        if since is not None and self._retry.clock() - since >= self._retry.steady:
            self._attempt = 0
        pause = self._retry.delay(self._attempt, hint)
        self._attempt += 1
        await self._retry.sleep(pause)
