"""CPU time, scaled by the speed of this machine so that limits hold on all of them."""

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from statistics import median
from typing import TypeVar

T = TypeVar("T")

# CPU seconds to start an idle Python on the machine where the limits were chosen.
BASELINE_CPU_S = 0.01
SAMPLES = 5


def measure_child_cpu(work: Callable[[], T]) -> tuple[T, float]:
    """The result of `work`, and the CPU seconds of the child processes it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_cpu(work: Callable[[], object]) -> float:
    """CPU seconds of `work` in this process, as on the machine where the limits were chosen.

    The best of three, without the coverage tracer.
    """

    def once() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    gc.collect()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(None)
    try:
        return min(once() for _ in range(3)) / usual_slowdown()
    finally:
        sys.settrace(before)
        gc.enable()


def interpreter_start_cpu() -> float:
    """CPU seconds to start an idle Python now."""
    words = [sys.executable, "-I", "-S", "-c", "pass"]
    return measure_child_cpu(lambda: subprocess.run(words, check=True))[1]


@cache
def usual_slowdown() -> float:
    """The slowdown of this machine, measured once."""
    return machine_slowdown()


def machine_slowdown(samples: list[float] | None = None) -> float:
    """How much slower this machine is than the reference, from these samples; at least 1."""
    times = samples or [interpreter_start_cpu() for _ in range(SAMPLES)]
    return max(1.0, median(times) / BASELINE_CPU_S)
