"""WebSocket on uvicorn's port through picows: one envelope per text frame."""

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

from picows import WSAutoPingStrategy, WSCloseCode, WSUpgradeRequest
from picows.picows import WSProtocol  # type: ignore[attr-defined]  # not named in its stubs

from accord.transports.edge.buffers import fill_buffers
from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.websocket.registry import WebSocketRegistry

# A few hundred messages. A buffer for everything that waits would be processed in one go, and would
# stay that large. Less for a sender over its rate limit.
MAX_READ_BYTES = 64 << 10
THROTTLED_READ_BYTES = 8 << 10
# A connection whose messages took longer yields to the others; one over its rate limit, sooner.
# Part of a message takes almost nothing.
TURN_BUDGET_S = 0.002
THROTTLED_TURN_BUDGET_S = 0.0002
MAX_READ_PAUSE_S = 5.0
UPGRADE_TIMEOUT_S = 10
# After this much silence the client is pinged, and has as long again to answer.
PING_INTERVAL_S = 30
READ_BUFFER_BYTES = 2048


class ReadTurns:
    """Decides when a connection is read, and how much at once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.max_read = MAX_READ_BYTES
        self.loop = asyncio.get_running_loop()

    def is_over_budget(self, seconds: float) -> bool:
        """Whether processing took long enough to yield."""
        return seconds > (
            TURN_BUDGET_S if self.max_read == MAX_READ_BYTES else THROTTLED_TURN_BUDGET_S
        )

    def yield_turn(self, seconds: float) -> None:
        """Pause reading for that many seconds, or until the other connections had their turn."""
        if self.transport.is_closing():
            return
        self.transport.pause_reading()
        self.max_read = THROTTLED_READ_BYTES if seconds else MAX_READ_BYTES
        if seconds:
            self.loop.call_later(min(seconds, MAX_READ_PAUSE_S), self._resume)
        else:
            self.loop.call_soon(self._resume)

    def _resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()


class PicowsProtocol(WSProtocol):  # type: ignore[misc]  # so it is Any to the checker
    """uvicorn calls `data_received` once with the upgrade request, then hands the socket over."""

    accept_upgrade: ClassVar[Callable[[WSUpgradeRequest], Any]]
    connection_limits: ClassVar[ConnectionLimits]
    max_frame: ClassVar[int]

    def __init__(self, config: Any, server_state: Any, app_state: Any) -> None:  # noqa: ARG002
        super().__init__(
            None,
            None,
            False,  # noqa: FBT003 - picows takes these by position
            type(self).accept_upgrade,
            logging.getLogger("picows"),
            True,  # noqa: FBT003
            UPGRADE_TIMEOUT_S,
            True,  # noqa: FBT003
            PING_INTERVAL_S,
            PING_INTERVAL_S,
            WSAutoPingStrategy.PING_WHEN_IDLE,
            False,  # noqa: FBT003 - pings are answered as everything is
            type(self).max_frame,
            None,
            READ_BUFFER_BYTES,
        )
        self.server_state = server_state

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.tcp_transport = transport
        self.read_turns = ReadTurns(transport)
        super().connection_made(transport)  # raises if the client is gone already
        self.server_state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self.connection_limits.release(self.tcp_transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            fill_buffers(data, self.get_buffer, super().buffer_updated)
        except BaseException:
            self.server_state.connections.discard(self)
            raise

    def get_buffer(self, size_hint: int) -> Any:
        return super().get_buffer(size_hint)[: self.read_turns.max_read]

    def buffer_updated(self, nbytes: int) -> None:
        listener = self.listener
        if self.transport.is_close_frame_sent:
            listener.closing = True  # messages after our close are ignored
        if listener.actor is not None:
            began = perf_counter()
            super().buffer_updated(nbytes)
            listener.process_pending()
            took = perf_counter() - began
            if self.read_turns.is_over_budget(took):
                listener.charge_work_time(took)
                self.read_turns.yield_turn(listener.read_pause_s)
            return
        listener.pending_bytes += nbytes  # every complete frame resets it
        super().buffer_updated(nbytes)
        listener.process_pending()
        if listener.pending_bytes > listener.max_frame:
            listener.close("message too big", WSCloseCode.MESSAGE_TOO_BIG)

    def shutdown(self) -> None:
        if self.listener is not None:
            self.listener.close_for_shutdown()
        elif not self.tcp_transport.is_closing():
            self.transport.disconnect()


def websocket_protocol_class(registry: WebSocketRegistry) -> type[Any]:
    """The class that uvicorn hands upgrades to, for one server."""
    frame = registry.intake.limits.frame
    attributes = {
        "accept_upgrade": staticmethod(registry.accept_upgrade),
        "connection_limits": registry.connection_limits,
        "max_frame": frame,
    }
    return type("Picows", (PicowsProtocol,), attributes)
