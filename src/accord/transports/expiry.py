"""The end of a token, by the machine's clock: however that is set, and however long it slept."""

import asyncio
from collections.abc import Callable

# A timer counts neither the hours of a machine that sleeps nor those a clock is set forward by.
LONGEST_NAP = 30.0


class Expiry:
    """Calls `end` once nothing is left, as `left` says in seconds; looks now and then."""

    def __init__(
        self, left: Callable[[], float], end: Callable[[], None], nap: float = LONGEST_NAP
    ) -> None:
        self.left = left
        self.end = end
        self.nap = nap
        self.loop = asyncio.get_running_loop()
        self.timer = self._wait()

    def cancel(self) -> None:
        """It does not matter any more."""
        self.timer.cancel()

    def _wait(self) -> asyncio.TimerHandle:
        return self.loop.call_later(min(self.left(), self.nap), self._look)

    def _look(self) -> None:
        if self.left() > 0:
            self.timer = self._wait()
        else:
            self.end()
