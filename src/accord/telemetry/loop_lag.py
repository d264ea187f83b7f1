"""Measures how late the event loop runs its timers."""

import asyncio

from accord.engine.counters import SECONDS_BUCKETS, Histogram

MEASURE_INTERVAL_S = 0.5


class LoopLag:
    """Schedules a wake-up and records how much later it came."""

    def __init__(self) -> None:
        self.histogram = Histogram(SECONDS_BUCKETS)
        self.last_s = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + MEASURE_INTERVAL_S
            await asyncio.sleep(MEASURE_INTERVAL_S)
            self.last_s = max(0.0, loop.time() - due)
            self.histogram.add(self.last_s)
