"""Sent messages that the server has not acknowledged yet."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from accord.client.envelope import Envelope, OutgoingMessage
from accord.client.errors import ClientError


class AcceptedMessage(NamedTuple):
    """The server's acknowledgement: the message's `seq`, and the message as members received it.

    A signal has `seq` 0 and no echo.
    """

    id: str
    seq: int
    echo: Envelope | None


AcceptedFuture = asyncio.Future[AcceptedMessage]


class PendingMessage(NamedTuple):
    """A sent message and the future of its acknowledgement."""

    message: OutgoingMessage
    future: AcceptedFuture


class Outbox:
    """Messages in sending order, each until it is accepted or refused."""

    def __init__(self) -> None:
        self._pending: dict[str, PendingMessage] = {}

    def __bool__(self) -> bool:
        """Whether any message is not acknowledged yet."""
        return bool(self._pending)

    def __contains__(self, id: str) -> bool:
        """Whether this message is not acknowledged yet."""
        return id in self._pending

    def add(self, message: OutgoingMessage) -> PendingMessage:
        """Add a message to wait for."""
        future: AcceptedFuture = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: self._pending.pop(message.id, None))
        pending = self._pending[message.id] = PendingMessage(message, future)
        return pending

    def unacknowledged(self) -> Iterator[OutgoingMessage]:
        """Messages to resend on a new connection, in order, without those the caller cancelled."""
        return (p.message for p in list(self._pending.values()) if not p.future.cancelled())

    def accept(self, accepted: AcceptedMessage) -> bool:
        """Resolve a message; returns whether it was in this outbox."""
        pending = self._pending.pop(accepted.id, None)
        if pending and not pending.future.done():
            pending.future.set_result(accepted)
        return pending is not None

    def refuse(self, id: str, error: ClientError) -> bool:
        """Fail a refused message; returns whether it was in this outbox."""
        pending = self._pending.pop(id, None)
        if pending:
            fail_future(pending.future, error)
        return pending is not None

    def fail(self, error: ClientError) -> None:
        """Fail every message: the connection will not come back."""
        for id in list(self._pending):
            self.refuse(id, error)


def fail_future(future: asyncio.Future[AcceptedMessage], error: ClientError) -> None:
    """Set the error; reading it here keeps asyncio from warning about futures without a waiter."""
    if not future.done():
        future.set_exception(error)
        future.exception()
