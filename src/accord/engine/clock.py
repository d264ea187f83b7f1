"""The clocks of a server: a steady one for the order of records, and the wall clock for tokens."""

import time
from collections.abc import Callable
from functools import partial


class SystemClock:
    """Wall time at the start, monotonic from then on: setting the clock has no effect (UNI-23)."""

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] | None = None,
    ) -> None:
        self._steady = steady or steady_clock()
        self._offset = wall() - self._steady()

    def now(self) -> int:
        """Milliseconds since 1970."""
        return (self._offset + self._steady()) // 1_000_000


class WallClock:
    """The wall clock as it is set now; for tokens, which other machines check too."""

    def __init__(self, wall: Callable[[], int] = time.time_ns) -> None:
        self._wall = wall

    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._wall() // 1_000_000


def steady_clock() -> Callable[[], int]:
    """Monotonic nanoseconds, including time asleep where the platform supports that."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    return time.monotonic_ns
