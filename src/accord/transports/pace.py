"""Pace: bytes of HTTP that are dear to read are read a little at a time, in turn with others."""

import asyncio
from collections.abc import Callable
from time import thread_time

from uvicorn.protocols.http.flow_control import FlowControl

# Some bytes are a thousand times as dear as others: a chunk of one costs as much as one of many.
# So few are looked at in one go that even those take less than this.
SLICE = 8 << 10
# Reading a request takes less, and so does most of what comes of a plain body at once.
LONGEST_S = 0.0005
# Whoever took longer waits so many times as long, behind all others who did: together they get a
# fifth of the time, until there are so many that one would wait longer than it may.
TIMES = 4
# What it takes to have a byte here at all.
BYTE_S = 1e-9
# Who is not heard for minutes takes us for gone.
LONGEST_REST_S = 5.0
# What has come and was not looked at, of all together.
MOST_HELD = 64 << 20


class Ration:
    """When whatever is dear to read goes on, over all connections of a server."""

    def __init__(self) -> None:
        self.next = 0.0
        self.held = 0

    def rest(self, took: float, now: float) -> float:
        """For how many seconds one is not read who took so long."""
        self.next = min(max(self.next, now) + took * TIMES, now + LONGEST_REST_S)
        return self.next - now

    def hold(self, size: int) -> bool:
        """So much more waits, or less; False where that is too much."""
        self.held += size
        return self.held <= MOST_HELD


class Paced(FlowControl):
    """Reads as fast as uvicorn can take it, and where that is dear no faster than is fair."""

    def __init__(
        self,
        transport: asyncio.Transport,
        ration: Ration,
        parse: Callable[[memoryview], None],
        clock: Callable[[], float] = thread_time,
    ) -> None:
        super().__init__(transport)
        self.ration = ration
        self.clock = clock  # of work alone: nobody pays for a machine that was busy elsewhere
        self.parse: Callable[[memoryview], None] | None = parse
        self.left = memoryview(b"")  # has come, and nobody has looked at it
        self.size = 0  # of what that is a part of, and keeps
        self.loop = asyncio.get_running_loop()
        self.turn = self.used = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.rests = False
        self.held = 0

    def feed(self, data: bytes) -> None:
        """Look at this, now or when it is its turn."""
        if self.parse is None:
            return
        self.left = memoryview(bytes(self.left) + data) if self.left else memoryview(data)
        self.size = len(self.left)
        if not self.rests:
            self._go_on(len(data))

    def stop(self) -> None:
        """Nobody looks at anything any more."""
        self.parse = None
        self.left = memoryview(b"")
        self._hold(0)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _go_on(self, fresh: int = 0) -> None:
        if (now := self.loop.time()) != self.turn:  # uvloop's stands still for a turn of the loop
            self.turn, self.used = now, 0.0
        self.used += fresh * BYTE_S
        while self.left and self.parse is not None:
            if self.used > LONGEST_S:
                self._rest(now)
                return
            part, self.left = self.left[:SLICE], self.left[SLICE:]
            began = self.clock()
            self.parse(part)
            self.used += self.clock() - began
        if self.used > LONGEST_S and self.parse is not None:
            self._rest(now)
        else:
            self._wake()

    def _rest(self, now: float) -> None:
        if not self.rests and not self.read_paused:
            self._transport.pause_reading()
        self.rests = True
        if self._hold(self.size if self.left else 0):
            self.timer = self.loop.call_later(self.ration.rest(self.used, now), self._again)
            self.used = 0.0
        else:
            self._transport.abort()

    def _again(self) -> None:
        self.timer = None
        self._go_on()

    def _hold(self, size: int) -> bool:
        more, self.held = size - self.held, size
        return self.ration.hold(more)

    def _wake(self) -> None:
        self._hold(0)
        if self.rests:
            self.rests = False
            if not self.read_paused and not self._transport.is_closing():
                self._transport.resume_reading()

    def pause_reading(self) -> None:
        """More has come than is taken."""
        if not self.read_paused:
            self.read_paused = True
            if not self.rests:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """It was taken."""
        if self.read_paused:
            self.read_paused = False
            if not self.rests:
                self._transport.resume_reading()
