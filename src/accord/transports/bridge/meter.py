"""How often the bridge may be asked: far more than hooks do, far less than would hurt."""

import time
from collections.abc import Callable

from accord.core.kernel.refusal import Refused, Why

PER_SECOND = 50.0
BURST = 200.0


class Meter:
    """One for all who ask: they are one user."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.left = BURST
        self.seen = now()

    def count(self) -> None:
        """One more; refused when it is too many."""
        now = self.now()
        self.left = min(BURST, self.left + (now - self.seen) * PER_SECOND)
        self.seen = now
        if self.left < 1:
            wait = max(1, int((1 - self.left) / PER_SECOND * 1000))
            raise Refused(Why.TOO_MANY, f"Too fast; wait {wait} ms", {"retry_after_ms": wait})
        self.left -= 1
