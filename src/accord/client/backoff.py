"""How long to wait before the next attempt."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

FLOOR = 0.1
CAP = 10.0
# Twice as long each time; past this many attempts every bound is reached.
MOST_DOUBLINGS = 30


def ceiling(attempt: int, floor: float = FLOOR, cap: float = CAP) -> float:
    """The longest wait before attempt number `attempt`, counted from 0."""
    return min(cap, floor * 2.0 ** min(attempt, MOST_DOUBLINGS))


class Retry(NamedTuple):
    """Exponential back-off with full jitter: a crowd that lost its server comes back spread out."""

    floor: float = FLOOR
    cap: float = CAP
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def delay(self, attempt: int) -> float:
        """Seconds to wait, anywhere between none and the ceiling."""
        return self.chance() * ceiling(attempt, self.floor, self.cap)
