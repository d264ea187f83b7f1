"""Receives every message of the stream once and in order, and hands them to the local copy.

A consumer of JetStream ends when the node that runs it does. It holds nothing that is missed: a new
one starts behind the last message that the copy has applied.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from accord.engine.ports import DamagedError, ForeignStoreError, StoreError
from accord.stores.nats.entries import EntryMessage, decode
from accord.stores.nats.errors import CONNECTION_ERRORS, ApiError
from accord.stores.nats.jetstream import PART_HEADER, RETRY_INTERVAL_S, JetStream

PULL_MESSAGES = 1000
PULL_BYTES = 16 << 20
PULL_EXPIRES_S = 60
HEARTBEAT_S = 2
# Without heartbeats for this long, the consumer is gone.
SILENCE_S = 2.5 * HEARTBEAT_S
INACTIVE_S = 60
NANOSECONDS = 1_000_000_000
HEARTBEAT_STATUS = "100"
FOLLOW_ERRORS: tuple[type[BaseException], ...] = (ApiError, StoreError, *CONNECTION_ERRORS)


class ReceivedMessage(NamedTuple):
    """A whole message, and the number of its last part in the stream."""

    sequence: int
    message: EntryMessage


Apply = Callable[[list[ReceivedMessage]], Awaitable[None]]


class CopyFailedError(StoreError):
    """The copy could not be written; what the stream says is not known here any more."""


class Follower:
    """Follows the stream in a task, until it is closed or the copy fails."""

    def __init__(
        self,
        stream: JetStream,
        applied: int,
        apply: Apply,
        on_failure: Callable[[StoreError], None],
    ) -> None:
        self.applied = applied
        self.failure: StoreError | None = None
        self._on_failure = on_failure
        self._stream = stream
        self._apply = apply
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._received: list[tuple[int, Msg]] = []
        self._parts: list[bytes] = []
        self._last = applied
        self._arrived = asyncio.Event()
        self._is_lost = False
        self._left = 0
        self._consumer = ""
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin behind what the copy has."""
        self._task = asyncio.create_task(self._run(), name="accord-nats-follower")

    async def reach(self, sequence: int) -> None:
        """Wait until the copy has this message; StoreError if it cannot."""
        if self.failure:
            raise self.failure
        if self.applied >= sequence:
            return
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((sequence, done))
        await done

    def reattach(self) -> None:
        """Ask with a new consumer, because the connection is new."""
        self._is_lost = True
        self._arrived.set()

    async def close(self) -> None:
        """Stop following."""
        while self._task and not self._task.done():
            # Again if need be: `asyncio.wait_for` of Python 3.11 loses a cancellation that
            # arrives together with what it waits for.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=RETRY_INTERVAL_S)
        await self._detach()
        self._fail(StoreError(f"The log {self._stream.address} is closed"))

    async def _run(self) -> None:
        while True:
            try:
                await self._attach()
                await self._follow()
            except FOLLOW_ERRORS as error:
                if isinstance(error, ForeignStoreError | CopyFailedError):
                    self._fail(error)
                    return
                await asyncio.sleep(RETRY_INTERVAL_S)

    async def _attach(self) -> None:
        await self._detach()
        self._received.clear()
        self._parts.clear()
        self._last = self.applied
        self._is_lost = False
        self._consumer = f"accord-{secrets.token_hex(8)}"
        stream = self._stream.address.stream
        config = {
            "name": self._consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self.applied + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": INACTIVE_S * NANOSECONDS,
        }
        self._inbox = self._stream.client.new_inbox()
        self._subscription = await self._stream.client.subscribe(
            self._inbox, cb=self._on_message, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        what = f"CONSUMER.CREATE.{stream}.{self._consumer}"
        await self._stream.request(what, {"stream_name": stream, "config": config})
        await self._pull()

    async def _detach(self) -> None:
        if self._subscription:
            with suppress(*CONNECTION_ERRORS):
                await self._subscription.unsubscribe()
            self._subscription = None
            with suppress(*CONNECTION_ERRORS):
                what = f"CONSUMER.DELETE.{self._stream.address.stream}.{self._consumer}"
                await self._stream.client.publish(f"$JS.API.{what}")

    async def _pull(self) -> None:
        """Ask for the next messages; they are sent as they come."""
        self._left = PULL_MESSAGES
        wish = {
            "batch": PULL_MESSAGES,
            "max_bytes": PULL_BYTES,
            "expires": PULL_EXPIRES_S * NANOSECONDS,
            "idle_heartbeat": HEARTBEAT_S * NANOSECONDS,
        }
        what = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream.address.stream}.{self._consumer}"
        await self._stream.client.publish(what, json.dumps(wish).encode(), reply=self._inbox)

    async def _on_message(self, message: Msg) -> None:
        headers = message.headers
        if headers and (status := headers.get("Status")):
            if status != HEARTBEAT_STATUS:
                # The request has ended; if its consumer has too, silence tells.
                self._left = 0
        else:
            self._left -= 1
            self._received.append((sequence_of(message.reply), message))
        self._arrived.set()

    async def _follow(self) -> None:
        while not self._is_lost:
            async with asyncio.timeout(SILENCE_S):
                await self._arrived.wait()
            self._arrived.clear()
            while self._received:
                received, self._received = self._received, []
                await self._take(received)
            if self._left <= 0 and not self._is_lost:
                await self._pull()

    async def _take(self, received: list[tuple[int, Msg]]) -> None:
        whole: list[ReceivedMessage] = []
        for sequence, message in received:
            if sequence != self._last + 1:
                if self._last == self.applied and sequence > self._last and not whole:
                    raise self._missing(sequence)
                self._is_lost = True
                break
            self._last = sequence
            if (data := self._complete(message)) is not None:
                name = str(self._stream.address)
                whole.append(ReceivedMessage(sequence, decode(data, name)))
        if whole:
            await self._apply(whole)
            self.applied = whole[-1].sequence
            self._wake()

    def _missing(self, sequence: int) -> DamagedError:
        first = self.applied + 1
        detail = f"lacks its messages {first} to {sequence - 1}, which were removed by other means"
        name = str(self._stream.address)
        return DamagedError(f"{name} {detail}; restore a backup of the stream", name)

    def _complete(self, message: Msg) -> bytes | None:
        """The data of a whole message; None while parts are missing."""
        part = message.headers.get(PART_HEADER) if message.headers else None
        if part is None:
            self._parts.clear()
            return message.data
        number, _, count = part.partition("/")
        if number == "1":
            self._parts.clear()
        self._parts.append(message.data)
        if number != count:
            return None
        data = b"".join(self._parts)
        self._parts.clear()
        return data

    def _wake(self) -> None:
        if not self._waiting:
            return
        left = []
        for sequence, done in self._waiting:
            if sequence > self.applied:
                left.append((sequence, done))
            elif not done.done():
                done.set_result(None)
        self._waiting = left

    def _fail(self, error: StoreError) -> None:
        self.failure = self.failure or error
        self._on_failure(self.failure)
        for _, done in self._waiting:
            if not done.done():
                done.set_exception(self.failure)
        self._waiting = []


def sequence_of(reply: str) -> int:
    """The number of a message in its stream, which JetStream puts into the reply subject.

    `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.…`, or with domain and account before the
    stream.
    """
    words = reply.split(".")
    return int(words[5] if len(words) == 9 else words[7])
