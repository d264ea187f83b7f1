"""How late the event loop is: what waits behind something that takes too long."""

import asyncio

from accord.engine.tally import SECONDS, Spread

EVERY_S = 0.5


class Lag:
    """Asks to be called at a time, and notes how much later that was."""

    def __init__(self) -> None:
        self.spread = Spread(SECONDS)
        self.last = 0.0

    async def run(self) -> None:
        """Measure, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self.last = max(0.0, loop.time() - due)
            self.spread.add(self.last)
