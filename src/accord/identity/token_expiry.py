"""A timer for token expiry by the wall clock, correct across suspend and clock changes."""

import asyncio
from collections.abc import Callable

# A monotonic timer does not advance while the machine sleeps or when the clock is set forward.
MAX_CHECK_INTERVAL_S = 30.0


class ExpiryTimer:
    """Calls `on_expire` once `seconds_left()` is zero, polling every `max_interval_s`."""

    def __init__(
        self,
        seconds_left: Callable[[], float],
        on_expire: Callable[[], None],
        max_interval_s: float = MAX_CHECK_INTERVAL_S,
    ) -> None:
        self.seconds_left = seconds_left
        self.on_expire = on_expire
        self.max_interval_s = max_interval_s
        self.loop = asyncio.get_running_loop()
        self.timer = self._schedule()

    def cancel(self) -> None:
        self.timer.cancel()

    def _schedule(self) -> asyncio.TimerHandle:
        return self.loop.call_later(min(self.seconds_left(), self.max_interval_s), self._check)

    def _check(self) -> None:
        if self.seconds_left() > 0:
            self.timer = self._schedule()
        else:
            self.on_expire()
