"""The time of this machine, deaf to whoever sets its clock while we run."""

import time
from collections.abc import Callable
from functools import partial


class SystemClock:
    """Wall time at the start, monotonic time from there on (UNI-23)."""

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
    """Whatever this machine's clock shows, for what others judge by theirs: tokens."""

    def __init__(self, wall: Callable[[], int] = time.time_ns) -> None:
        self._wall = wall

    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._wall() // 1_000_000


def steady_clock() -> Callable[[], int]:
    """Nanoseconds that go on while the machine sleeps, where the platform can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    return time.monotonic_ns
