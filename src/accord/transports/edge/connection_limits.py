"""How many connections a server accepts, and how many unread bytes it buffers for all of them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.transports.edge.http_read_pacing import ParseBudget

log = logging.getLogger("accord.http")

# Even when the server is full, a new connection gets this long to authenticate before it can be
# evicted.
MIN_WAIT_S = 1
# A lingering connection holds a file descriptor but is not counted as connected.
MAX_LINGERING = 64


class UnreadBytes:
    """A limit on the bytes buffered for all slow readers together."""

    def __init__(self, max_count: int, size: Callable[[asyncio.Transport], int]) -> None:
        self.max_bytes = max_count
        self.size_of = size
        self.size_at_pause: dict[asyncio.Transport, int] = {}
        self.cut_off_count = 0
        self.added_since_check = 0

    def watch(self, transport: asyncio.Transport) -> None:
        """Track a connection whose reader does not keep up."""
        self.size_at_pause[transport] = self.size_of(transport)

    def add_bytes(self, size: int) -> None:
        """Count bytes queued for a slow reader.

        The total is checked after every 1/16 of the limit.
        """
        self.added_since_check += size
        if self.added_since_check > self.max_bytes >> 4:
            self.cut_off_slowest()

    def unwatch(self, transport: asyncio.Transport) -> None:
        """Stop tracking a connection that caught up or closed."""
        self.size_at_pause.pop(transport, None)

    def cut_off_slowest(self) -> None:
        """When the total is over the limit, abort the readers that read least."""
        self.added_since_check = 0
        left = {item: self.size_of(item) for item in self.size_at_pause}
        excess = sum(left.values()) - self.max_bytes
        if excess <= 0:
            return
        before = self.cut_off_count
        for transport in sorted(left, key=lambda item: self.size_at_pause[item] - left[item]):
            excess -= left[transport]
            self.cut_off_count += 1
            self.unwatch(transport)
            transport.abort()
            if excess <= 0:
                break
        log.warning("readers.cut_off", extra={"count": self.cut_off_count - before})


class ConnectionLimits:
    """All connections of a server, and since when each unauthenticated one has been waiting."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.max_connections = limits.connections
        self.max_unauthenticated = limits.strangers
        self.max_head_bytes = limits.head
        self.stall_timeout_s = limits.stall_seconds
        self.unread = UnreadBytes(limits.unread, self.unread_of)
        self.connected: set[asyncio.Transport] = set()
        # Bytes that the TLS layer has handed to TCP are buffered in the TCP transport.
        self.tcp_transports: dict[asyncio.Transport, asyncio.Transport] = {}
        self.waiting_since: dict[asyncio.Transport, float] = {}
        self.lingering: set[asyncio.Transport] = set()
        self.parse_budget = ParseBudget()

    def admit(self, transport: asyncio.Transport, now: float) -> bool:
        """Count one more connection; False when the server is full."""
        if (
            len(self.waiting_since) >= self.max_unauthenticated
            or len(self.connected) >= self.max_connections
        ):
            self._evict_waiting(now)
        if len(self.connected) >= self.max_connections:
            return False
        self.connected.add(transport)
        self.waiting_since[transport] = now
        return True

    def _evict_waiting(self, now: float) -> None:
        """Abort the connections that have waited longest."""
        excess = len(self.waiting_since) - self.max_unauthenticated + 1
        if len(self.connected) >= self.max_connections:
            excess = max(excess, 1)
        for transport, since in list(self.waiting_since.items())[: max(0, excess)]:
            if now - since < MIN_WAIT_S:
                return
            self.release(transport)
            transport.abort()

    def mark_waiting(self, transport: asyncio.Transport, now: float) -> None:
        """Restart the connection's wait, as if it had just been accepted."""
        self.waiting_since.pop(transport, None)
        if transport in self.connected:
            self.waiting_since[transport] = now

    def mark_active(self, transport: asyncio.Transport) -> None:
        """The connection has a request or a principal, and is not evicted as idle."""
        self.waiting_since.pop(transport, None)

    def start_linger(self, transport: asyncio.Transport) -> bool:
        """Let a refused client finish sending; False when too many do so already."""
        if len(self.lingering) >= MAX_LINGERING:
            return False
        self.lingering.add(transport)
        return True

    def release(self, transport: asyncio.Transport) -> None:
        """Forget a closed connection."""
        self.lingering.discard(transport)
        self.connected.discard(transport)
        self.waiting_since.pop(transport, None)
        self.tcp_transports.pop(transport, None)

    def unread_of(self, transport: asyncio.Transport) -> int:
        """Bytes buffered for this connection, in TLS and in TCP."""
        under = self.tcp_transports.get(transport)
        below = under.get_write_buffer_size() if under is not None else 0
        return transport.get_write_buffer_size() + below


ConnectionT = TypeVar("ConnectionT")
PER_PRINCIPAL_LIMIT = "connections_per_principal"


class PrincipalConnections(Generic[ConnectionT]):
    """Open connections, counted per principal."""

    def __init__(self, max_count: int) -> None:
        self.max_per_principal = max_count
        self.principals: dict[ConnectionT, tuple[str, str]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()

    def ensure_capacity(self, actor: Actor) -> None:
        """Refuse a principal that already has the maximum."""
        if self.counts[actor.workspace, actor.principal] >= self.max_per_principal:
            detail = (
                f"{actor.principal} has {self.max_per_principal} connections; close one first "
                f"({PER_PRINCIPAL_LIMIT})"
            )
            raise limit_exceeded(
                PER_PRINCIPAL_LIMIT, self.max_per_principal, detail, retry_after_ms=1000
            )

    def add(self, connection: ConnectionT, actor: Actor) -> None:
        """Count a connection; raises Refused when its principal has too many."""
        if connection not in self.principals:
            self.ensure_capacity(actor)
            self.principals[connection] = actor.workspace, actor.principal
            self.counts[self.principals[connection]] += 1

    def count_of(self, connection: ConnectionT) -> int:
        """How many connections the principal of this one has; 1 before it has signed in."""
        principal = self.principals.get(connection)
        return self.counts[principal] if principal is not None else 1

    def remove(self, connection: ConnectionT) -> None:
        principal = self.principals.pop(connection, None)
        if principal is not None:
            self.counts[principal] -= 1
            if not self.counts[principal]:
                del self.counts[principal]
