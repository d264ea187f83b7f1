"""How long a hook may wait for servers: one second for all that it asks, however often.

Only the time in which a hook asks counts, not that in which git works between two requests: a huge
commit takes git several seconds, and still gets its record from a server that answers at once.
"""

from __future__ import annotations

import time

UNLIMITED_S = float("inf")


class WaitingTime:
    """What is left to a hook; outside of hooks each request has a limit of its own."""

    __slots__ = ("left_s",)

    def __init__(self) -> None:
        self.left_s = UNLIMITED_S

    def begin(self, seconds: float) -> None:
        """A hook begins, and may wait that long."""
        self.left_s = seconds

    def end(self) -> None:
        """The hook ends."""
        self.left_s = UNLIMITED_S

    def spend(self, seconds: float) -> None:
        """A request took that long."""
        self.left_s -= seconds


def seconds_left(deadline: float) -> float:
    """The time until then; raises TimeoutError if it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
