"""Parsing expensive HTTP input in small slices, so that other connections get their turn."""

import asyncio
from collections.abc import Callable
from time import perf_counter, thread_time

from uvicorn.protocols.http.flow_control import FlowControl

# Some input costs a thousand times more CPU per byte: a one-byte chunk costs as much as a large
# one. A slice is small enough to stay below the budget even then.
PARSE_SLICE_BYTES = 8 << 10
# Parsing a normal request, or a plain body as far as it arrives at once, takes less.
PARSE_BUDGET_S = 0.0005
# Asking for the CPU time is a system call. Elapsed time, which is no less, is cheap to ask for, so
# the CPU time is only looked at if this much time has gone by.
MIN_DOUBTED_S = PARSE_BUDGET_S / 4
# How old the CPU time may be from which parsing is measured then.
MAX_READING_AGE_S = PARSE_BUDGET_S / 2
# A connection over the budget pauses for this multiple of the CPU time it took, queued behind all
# others that did: together they get a fifth of the CPU, until the queue reaches the maximum pause.
PAUSE_FACTOR = 4
# The cost of receiving a byte at all.
SECONDS_PER_BYTE = 1e-9
# A client that gets no response for minutes assumes that the server is gone.
MAX_PARSE_PAUSE_S = 5.0
# Received but unparsed bytes, over all connections.
MAX_UNPARSED_BYTES = 64 << 20


class ParseBudget:
    """Measures parsing and schedules what is expensive, over all connections of a server.

    `cpu` is the CPU time of this thread: a client does not pay for a busy machine.
    """

    def __init__(
        self, cpu: Callable[[], float] = thread_time, elapsed: Callable[[], float] = perf_counter
    ) -> None:
        self.cpu = cpu
        self.elapsed = elapsed
        self.read_at = float("-inf")
        self.cpu_then = 0.0
        self.next_slot = 0.0
        self.unparsed_bytes = 0

    def start(self) -> float:
        """Parsing starts; returns what `spent_since` needs."""
        now = self.elapsed()
        if now - self.read_at > MAX_READING_AGE_S:
            self.read_at, self.cpu_then = now, self.cpu()
        return now

    def spent_since(self, started: float) -> float:
        """CPU seconds since parsing started, or a little more; for cheap parsing, elapsed ones."""
        took = self.elapsed() - started
        return took if took < MIN_DOUBTED_S else min(took, self.cpu() - self.cpu_then)

    def pause_for(self, took: float, now: float) -> float:
        """How many seconds a connection pauses after `took` seconds of parsing."""
        self.next_slot = min(
            max(self.next_slot, now) + took * PAUSE_FACTOR, now + MAX_PARSE_PAUSE_S
        )
        return self.next_slot - now

    def reserve(self, size: int) -> bool:
        """Change the number of unparsed bytes by `size`; False when there are too many."""
        self.unparsed_bytes += size
        return self.unparsed_bytes <= MAX_UNPARSED_BYTES


class PacedFlowControl(FlowControl):
    """uvicorn's flow control, which also pauses reading while parsing is over its CPU budget."""

    def __init__(
        self,
        transport: asyncio.Transport,
        budget: ParseBudget,
        parse: Callable[[memoryview], None],
    ) -> None:
        super().__init__(transport)
        self.budget = budget
        self.parse: Callable[[memoryview], None] | None = parse
        self.unparsed = memoryview(b"")  # received, not parsed
        self.unparsed_size = 0  # of the whole buffer that `unparsed` keeps alive
        self.loop = asyncio.get_running_loop()
        self.turn_started = self.turn_cpu_s = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.pausing = False
        self.reserved = 0

    def feed(self, data: bytes) -> None:
        """Parse these bytes, now or after the pause."""
        if self.parse is None:
            return
        if len(data) <= PARSE_SLICE_BYTES and not self.pausing:
            self._parse_one_slice(memoryview(data), self.parse)
            return
        self.unparsed = (
            memoryview(bytes(self.unparsed) + data) if self.unparsed else memoryview(data)
        )
        self.unparsed_size = len(self.unparsed)
        if not self.pausing:
            self._parse_slices(len(data))

    def _parse_one_slice(self, part: memoryview, parse: Callable[[memoryview], None]) -> None:
        """The usual case: nothing waits, and what arrived is short."""
        if (now := self.loop.time()) != self.turn_started:
            self.turn_started, self.turn_cpu_s = now, 0.0
        started = self.budget.start()
        parse(part)
        self.turn_cpu_s += self.budget.spent_since(started) + len(part) * SECONDS_PER_BYTE
        if self.turn_cpu_s > PARSE_BUDGET_S and self.parse is not None:
            self._pause(now)

    def stop(self) -> None:
        """Drop unparsed bytes and parse no more."""
        self.parse = None
        self.unparsed = memoryview(b"")
        self._reserve(0)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _parse_slices(self, fresh: int = 0) -> None:
        if (
            now := self.loop.time()
        ) != self.turn_started:  # uvloop's time is constant within one turn of the loop
            self.turn_started, self.turn_cpu_s = now, 0.0
        self.turn_cpu_s += fresh * SECONDS_PER_BYTE
        while self.unparsed and self.parse is not None:
            if self.turn_cpu_s > PARSE_BUDGET_S:
                self._pause(now)
                return
            part, self.unparsed = (
                self.unparsed[:PARSE_SLICE_BYTES],
                self.unparsed[PARSE_SLICE_BYTES:],
            )
            started = self.budget.start()
            self.parse(part)
            self.turn_cpu_s += self.budget.spent_since(started)
        if self.turn_cpu_s > PARSE_BUDGET_S and self.parse is not None:
            self._pause(now)
        else:
            self._resume()

    def _pause(self, now: float) -> None:
        if not self.pausing and not self.read_paused:
            self._transport.pause_reading()
        self.pausing = True
        if self._reserve(self.unparsed_size if self.unparsed else 0):
            self.timer = self.loop.call_later(
                self.budget.pause_for(self.turn_cpu_s, now), self._continue
            )
            self.turn_cpu_s = 0.0
        else:
            self._transport.abort()

    def _continue(self) -> None:
        self.timer = None
        self._parse_slices()

    def _reserve(self, size: int) -> bool:
        more, self.reserved = size - self.reserved, size
        return self.budget.reserve(more)

    def _resume(self) -> None:
        self._reserve(0)
        if self.pausing:
            self.pausing = False
            if not self.read_paused and not self._transport.is_closing():
                self._transport.resume_reading()

    def pause_reading(self) -> None:
        """Pause because uvicorn's buffers are full."""
        if not self.read_paused:
            self.read_paused = True
            if not self.pausing:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo `pause_reading`; reading stays paused while parsing is over its budget."""
        if self.read_paused:
            self.read_paused = False
            if not self.pausing:
                self._transport.resume_reading()
