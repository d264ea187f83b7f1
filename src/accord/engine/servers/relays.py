"""What is sent and never stored (drafts, notices), to the members connected to other servers.

ONE ORDER. While there are other servers, a relay is delivered when it comes back from the bus, also
to this server's own connections. So all servers deliver the relays of a session in one order.

AFTER WHAT IT FOLLOWS. A relay carries the version of its stream; a server that has not read as far
holds it back until it has. Records that are decided later are appended after it has come back
(`settled`); a server that has read such a record of its sender nevertheless drops the relay. So the
messages of one sender keep their order everywhere.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import MemberIds
from accord.engine.delivery.delivery import AddressedFrame, Delivery
from accord.engine.servers.bus import SignalBus
from accord.engine.streams.stream import Outcome, Stream

TOPIC = "relay"
# How long records wait for a relay of this server to come back, before it is delivered at once.
SETTLE_TIMEOUT_S = 0.25
# Relays that wait for a stream to be read; beyond this the oldest are dropped.
MAX_HELD = 256


class RelaySignal(msgspec.Struct, frozen=True, array_like=True):
    """A relay for other servers; `number` counts those of its server."""

    number: int
    stream: str
    version: int
    sender: str  # empty for a message of the server itself
    frames: list[tuple[str, list[str] | None]]
    id: str
    fork: str | None


class RelayExchange:
    """Sends relays to other servers, and delivers theirs."""

    def __init__(
        self,
        bus: SignalBus,
        delivery: Delivery,
        streams: Mapping[str, Stream],
        catch_up: Callable[[Stream, int], None],
        on_activity: Callable[[Stream, str], None],
    ) -> None:
        self._bus = bus
        self._delivery = delivery
        self._streams = streams
        self._catch_up = catch_up
        self._on_activity = on_activity
        self._number = 0
        self._under_way: dict[str, deque[tuple[int, list[AddressedFrame]]]] = {}
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._held: dict[str, deque[RelaySignal]] = {}
        self.missed = 0  # relays that did not come back in time, or could not be held
        bus.subscribe(TOPIC, self._on_relay, with_own=True)

    def send(
        self, stream: Stream, outcome: Outcome, said: Sequence[AddressedFrame]
    ) -> list[AddressedFrame]:
        """Send these frames to all servers; returns those to be delivered here at once."""
        here = frozenset({outcome.submission.actor.principal})
        if self._bus.is_alone:
            return list(said)
        shared = [line for line in said if line[1] != here]
        if shared:
            self._publish(stream, outcome, shared)
        return [line for line in said if line[1] == here]

    def _publish(self, stream: Stream, outcome: Outcome, lines: list[AddressedFrame]) -> None:
        self._number += 1
        message = outcome.submission.message
        signal = RelaySignal(
            self._number,
            stream.id,
            stream.base.version,
            "" if message.sender == SYSTEM or outcome.records else message.sender,
            [(frame.decode(), None if to is None else sorted(to)) for frame, to in lines],
            message.id,
            message.fork,
        )
        self._under_way.setdefault(stream.id, deque()).append((self._number, lines))
        self._bus.publish(TOPIC, signal)
        loop = asyncio.get_running_loop()
        loop.call_later(SETTLE_TIMEOUT_S, self._give_up, stream.id, self._number)

    # This server's own

    def is_pending(self, stream: str) -> bool:
        """Whether a relay of this server has not come back."""
        return stream in self._under_way

    async def settled(self, stream: str) -> None:
        """Wait until all relays that were sent are delivered."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(stream, []).append(done)
        await done

    def deliver_all(self) -> None:
        """The link is lost: deliver here what is under way."""
        for stream, sent in list(self._under_way.items()):
            self._on_returned(stream, sent[-1][0])

    def _give_up(self, stream: str, number: int) -> None:
        if any(each == number for each, _ in self._under_way.get(stream, ())):
            self.missed += 1
            self._on_returned(stream, number)

    def _on_returned(self, stream: str, number: int) -> None:
        """Deliver everything up to this relay; what was delivered before is not again."""
        sent = self._under_way.get(stream)
        while sent and sent[0][0] <= number:
            self._delivery.write_lines(stream, sent.popleft()[1])
        if not sent:
            self._under_way.pop(stream, None)
            for waiter in self._waiters.pop(stream, ()):
                if not waiter.done():
                    waiter.set_result(None)

    # Those of other servers

    def _on_relay(self, server: int, content: msgspec.Raw) -> None:
        signal = msgspec.json.decode(content, type=RelaySignal)
        if server == self._bus.id:
            self._on_returned(signal.stream, signal.number)
            return
        stream = self._streams.get(signal.stream)
        if stream is None:  # no one is connected to it here
            return
        held = self._held.get(signal.stream)
        if held is None and signal.version <= stream.base.version:
            self._deliver(stream, signal)
            return
        held = self._held.setdefault(signal.stream, deque())
        held.append(signal)
        if len(held) > MAX_HELD:
            held.popleft()
            self.missed += 1
        self._catch_up(stream, signal.version)

    def on_caught_up(self, stream: Stream) -> None:
        """Deliver what waited for records that are here now."""
        held = self._held.get(stream.id)
        while held and held[0].version <= stream.base.version:
            self._deliver(stream, held.popleft())
        if not held:
            self._held.pop(stream.id, None)

    def _deliver(self, stream: Stream, signal: RelaySignal) -> None:
        if signal.sender:
            if was_overtaken(stream, signal):
                return
            stream.remember_signal_id(signal.id, signal.fork)
            self._on_activity(stream, signal.sender)
        self._delivery.write_lines(stream.id, addressed(signal.frames))


def was_overtaken(stream: Stream, signal: RelaySignal) -> bool:
    """Whether a later message of the same sender was delivered here already."""
    for encoded in reversed(stream.window):
        if encoded.record.version <= signal.version:
            return False
        if encoded.record.sender == signal.sender:
            return True
    return False


def addressed(frames: Iterable[tuple[str, list[str] | None]]) -> list[AddressedFrame]:
    """Frames with the members they are for."""

    def members(to: list[str] | None) -> MemberIds | None:
        return None if to is None else frozenset(to)

    return [(frame.encode(), members(to)) for frame, to in frames]
