"""How slow this machine is now, so that a bound on CPU time means the same on all of them."""

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

T = TypeVar("T")

# CPU seconds of a Python that does nothing, where the bounds were set.
BARE_S = 0.01
TRIES = 5


def spent(work: Callable[[], T]) -> tuple[T, float]:
    """What it comes to, and the CPU seconds of the processes that it started and that ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu(work: Callable[[], object]) -> float:
    """The CPU seconds of it here, at its best of three, without what measures coverage."""

    def once() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    gc.collect()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(None)
    try:
        return min(once() for _ in range(3))
    finally:
        sys.settrace(before)
        gc.enable()


def bare() -> float:
    """CPU seconds of a Python that does nothing, now."""
    words = [sys.executable, "-I", "-S", "-c", "pass"]
    return spent(lambda: subprocess.run(words, check=True))[1]


def slowness(bares: list[float] | None = None) -> float:
    """How many times as much everything costs, for these starts or for some now; never below 1."""
    found = bares or [bare() for _ in range(TRIES)]
    return max(1.0, median(found) / BARE_S)
