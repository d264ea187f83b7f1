"""WebSocket: one envelope per text frame, on uvicorn's port through picows."""

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

from picows import WSAutoPingStrategy, WSCloseCode, WSUpgradeRequest
from picows.picows import WSProtocol  # type: ignore[attr-defined]  # not named in its stubs

from accord.transports.buffers import pour
from accord.transports.hall import Hall
from accord.transports.porch import Porch
from accord.transports.turns import Turns

HANDSHAKE_SECONDS = 10
# A connection that is silent this long is asked for a sign of life, and given as long again.
PING_SECONDS = 30
READ_BUFFER = 2048


class PicowsProtocol(WSProtocol):  # type: ignore[misc]  # so it is Any to the checker
    """uvicorn calls `data_received` once, with the request's head, then hands over."""

    admit: ClassVar[Callable[[WSUpgradeRequest], Any]]
    porch: ClassVar[Porch]
    frame: ClassVar[int]

    def __init__(self, config: Any, server_state: Any, app_state: Any) -> None:  # noqa: ARG002
        super().__init__(
            None,
            None,
            False,  # noqa: FBT003 - picows takes these by position
            type(self).admit,
            logging.getLogger("picows"),
            True,  # noqa: FBT003
            HANDSHAKE_SECONDS,
            True,  # noqa: FBT003
            PING_SECONDS,
            PING_SECONDS,
            WSAutoPingStrategy.PING_WHEN_IDLE,
            False,  # noqa: FBT003 - pings are answered as everything is
            type(self).frame,
            None,
            READ_BUFFER,
        )
        self.server_state = server_state

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.raw = transport
        self.turns = Turns(transport)
        super().connection_made(transport)  # fails where the other side is gone already
        self.server_state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self.porch.leave(self.raw)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            pour(data, self.get_buffer, super().buffer_updated)
        except BaseException:
            self.server_state.connections.discard(self)
            raise

    def get_buffer(self, size_hint: int) -> Any:
        return super().get_buffer(size_hint)[: self.turns.most]

    def buffer_updated(self, nbytes: int) -> None:
        listener = self.listener
        if self.transport.is_close_frame_sent:
            listener.leaving = True  # of what comes after the end nothing is heard
        if listener.actor is not None:
            began = perf_counter()
            super().buffer_updated(nbytes)
            listener.work_off()
            took = perf_counter() - began
            if self.turns.over(took):
                listener.worked(took)
                self.turns.give_way(listener.rest)
            return
        listener.unread += nbytes  # every frame sets it to nothing
        super().buffer_updated(nbytes)
        listener.work_off()
        if listener.unread > listener.limit:
            listener.close("message too big", WSCloseCode.MESSAGE_TOO_BIG)

    def shutdown(self) -> None:
        if self.listener is not None:
            self.listener.say_goodbye()
        elif not self.raw.is_closing():
            self.transport.disconnect()


def protocol_class(hall: Hall) -> type[Any]:
    """Picows as the class that uvicorn hands an upgrade to, for one server."""
    frame = hall.reception.limits.frame
    own = {"admit": staticmethod(hall.admit), "porch": hall.porch, "frame": frame}
    return type("Picows", (PicowsProtocol,), own)
