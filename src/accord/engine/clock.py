"""The time of this machine, deaf to whoever sets its clock while we run."""

import time
from collections.abc import Callable


class SystemClock:
    """Wall time at the start, monotonic time from there on (UNI-23)."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._steady = steady or _steady
        self._offset = wall() - self._steady()

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int((self._offset + self._steady()) * 1000)


def _steady() -> float:
    """Seconds that go on while the machine sleeps, where the platform can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
