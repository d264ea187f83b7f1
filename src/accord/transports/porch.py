"""The porch: who is connected and waits, and how much waits for whom."""

import asyncio
import logging
from collections.abc import Callable

from accord.core.kernel.limits import Limits
from accord.transports.pace import Ration

log = logging.getLogger("accord.http")

# Once too many wait, nobody waits longer than a second.
SHORTEST_WAIT = 1
# Each of them is an open file, and none of them counts as connected.
MOST_LINGERING = 64


class Unread:
    """What waits for its readers: so many bytes in all, whoever they are for."""

    def __init__(self, most: int, size: Callable[[asyncio.Transport], int]) -> None:
        self.most = most
        self.size = size
        self.began: dict[asyncio.Transport, int] = {}
        self.cut = 0
        self.unseen = 0

    def add(self, transport: asyncio.Transport) -> None:
        """It does not keep up."""
        self.began[transport] = self.size(transport)

    def more(self, size: int) -> None:
        """So much more waits for one of them; all are looked at once in a while."""
        self.unseen += size
        if self.unseen > self.most >> 4:
            self.check()

    def remove(self, transport: asyncio.Transport) -> None:
        """It does, or it is gone."""
        self.began.pop(transport, None)

    def check(self) -> None:
        """Where there is too much, those who have read least go, the longest waiting first."""
        self.unseen = 0
        left = {each: self.size(each) for each in self.began}
        surplus = sum(left.values()) - self.most
        if surplus <= 0:
            return
        before = self.cut
        for transport in sorted(left, key=lambda each: self.began[each] - left[each]):
            surplus -= left[transport]
            self.cut += 1
            self.remove(transport)
            transport.abort()
            if surplus <= 0:
                break
        log.warning("readers.cut_off", extra={"count": self.cut - before})


class Porch:
    """Every connection of a server, and since when those wait that show no identity."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.most = limits.connections
        self.most_waiting = limits.strangers
        self.head = limits.head
        self.stall = limits.stall_seconds
        self.unread = Unread(limits.unread, self.size)
        self.here: set[asyncio.Transport] = set()
        # What TLS has handed on to TCP waits there.
        self.under: dict[asyncio.Transport, asyncio.Transport] = {}
        self.waiting: dict[asyncio.Transport, float] = {}
        self.lingering: set[asyncio.Transport] = set()
        self.ration = Ration()

    def arrive(self, transport: asyncio.Transport, now: float) -> bool:
        """Let one more in; False when there is no room."""
        if len(self.waiting) >= self.most_waiting or len(self.here) >= self.most:
            self._make_room(now)
        if len(self.here) >= self.most:
            return False
        self.here.add(transport)
        self.waiting[transport] = now
        return True

    def _make_room(self, now: float) -> None:
        """Those who have waited longest give way."""
        surplus = len(self.waiting) - self.most_waiting + 1
        if len(self.here) >= self.most:
            surplus = max(surplus, 1)
        for transport, since in list(self.waiting.items())[: max(0, surplus)]:
            if now - since < SHORTEST_WAIT:
                return
            self.leave(transport)
            transport.abort()

    def wait(self, transport: asyncio.Transport, now: float) -> None:
        """It waits again, as if it had just come."""
        self.waiting.pop(transport, None)
        if transport in self.here:
            self.waiting[transport] = now

    def known(self, transport: asyncio.Transport) -> None:
        """It does not wait any more."""
        self.waiting.pop(transport, None)

    def linger(self, transport: asyncio.Transport) -> bool:
        """Let one that is refused finish its sentence; False where too many do."""
        if len(self.lingering) >= MOST_LINGERING:
            return False
        self.lingering.add(transport)
        return True

    def leave(self, transport: asyncio.Transport) -> None:
        """It is gone."""
        self.lingering.discard(transport)
        self.here.discard(transport)
        self.waiting.pop(transport, None)
        self.under.pop(transport, None)

    def size(self, transport: asyncio.Transport) -> int:
        """How much waits for a reader."""
        under = self.under.get(transport)
        below = under.get_write_buffer_size() if under is not None else 0
        return transport.get_write_buffer_size() + below
