"""Signals between the servers of one log, by topic."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from accord.engine.ports import ServerLink

log = logging.getLogger("accord.servers")

# Signals of one turn of the event loop travel together, up to about this many bytes.
MAX_BATCH_BYTES = 7000

# Called with the server that sent it and the encoded content.
Handler = Callable[[int, msgspec.Raw], None]


class Signal(msgspec.Struct, frozen=True, array_like=True):
    """One signal: its topic, and what handlers of the topic decode."""

    topic: str
    content: msgspec.Raw


_DECODER = msgspec.json.Decoder(list[Signal])


class SignalBus:
    """Publishes and receives signals; nothing is sent while there is no other server."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link
        self._handlers: dict[str, Handler] = {}
        self._own_topics: set[str] = set()
        self._waiting: list[Signal] = []
        self._is_scheduled = False

    @property
    def id(self) -> int:
        """The id of this server."""
        return self._link.id

    @property
    def is_alone(self) -> bool:
        """Whether there is no other server."""
        return not self._link.others

    def subscribe(self, topic: str, handler: Handler, *, with_own: bool = False) -> None:
        """Call this for every signal of the topic; `with_own` for this server's own too."""
        self._handlers[topic] = handler
        if with_own:
            self._own_topics.add(topic)

    def publish(self, topic: str, content: Any) -> bool:
        """Send this to all servers; False if there is no other one."""
        if self.is_alone:
            return False
        self._waiting.append(Signal(topic, msgspec.Raw(msgspec.json.encode(content))))
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)
        return True

    def receive(self, sender: int, text: bytes) -> None:
        """Hand signals to their handlers; those of topics that are not known here are ignored."""
        try:
            signals = _DECODER.decode(text)
        except msgspec.MsgspecError:
            log.warning("signal.unreadable", extra={"server": sender})
            return
        for signal in signals:
            handler = self._handlers.get(signal.topic)
            if handler is None or (sender == self.id and signal.topic not in self._own_topics):
                continue
            try:
                handler(sender, signal.content)
            except msgspec.MsgspecError:  # of another version
                log.warning("signal.unreadable", extra={"server": sender})

    def _flush(self) -> None:
        self._is_scheduled = False
        waiting, self._waiting = self._waiting, []
        batch, size = list[Signal](), 0
        for signal in waiting:
            if batch and size + len(signal.content) > MAX_BATCH_BYTES:
                self._link.send(msgspec.json.encode(batch))
                batch, size = [], 0
            batch.append(signal)
            size += len(signal.content) + len(signal.topic) + 8
        if batch:
            self._link.send(msgspec.json.encode(batch))
