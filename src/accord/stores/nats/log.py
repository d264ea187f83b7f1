"""The `EventLog` port on a NATS JetStream stream, with a local copy for reading.

**Theory.** JetStream stores messages in one order that a quorum of its nodes agrees on, and has no
index: it cannot say whether a stream of ours already has an id, or give the rows behind a version.
So every server keeps a copy of the log in SQLite and applies the messages of the stream to it, in
their order, by one fixed rule: an append whose expected version is not that of its stream, or one
of whose ids the stream already has, changes nothing. All copies start empty and see the same
messages, so all of them decide the same, without asking each other. The server that sent an append
learns the outcome from its own copy, which is why an append waits until the copy has it.

What arrives in one turn of the event loop is sent as one message (group commit). Messages are sent
without waiting for those before.

A read asks JetStream for the number of the newest message and waits until the copy has that one,
so it sees everything that was acknowledged on any server before it began.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Sequence

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import Row, Snapshot, StoreError
from accord.stores.append import check_append
from accord.stores.nats.address import NatsAddress
from accord.stores.nats.entries import Advance, Append, Entry, Head, encode
from accord.stores.nats.errors import CONNECTION_ERRORS, ApiError, store_error
from accord.stores.nats.follower import Follower, ReceivedMessage
from accord.stores.nats.jetstream import RETRY_INTERVAL_S, JetStream
from accord.stores.nats.local_copy import LocalCopy
from accord.stores.nats.server_claim import ServerClaim, SingleServerLink
from accord.stores.sqlite.writer import SYNCHRONOUS

# After this long without an outcome, senders get an error; the entry may still be stored, and a
# client that sends the same message again then gets the first outcome.
ANSWER_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0
ATTEMPT_ERRORS: tuple[type[BaseException], ...] = (asyncio.CancelledError, *CONNECTION_ERRORS)


class PendingEntry:
    """An entry and the future that its outcome resolves."""

    __slots__ = ("done", "entry")

    def __init__(self, entry: Entry, done: "asyncio.Future[None]") -> None:
        self.entry = entry
        self.done = done


class NatsLog:
    """The log in one stream."""

    def __init__(self, stream: JetStream, copy: LocalCopy) -> None:
        self._stream = stream
        self._copy = copy
        self._log = copy.log
        self._follower = Follower(stream, copy.applied, self._apply, self._fail_all)
        self._claim = ServerClaim(stream)
        self._unsent: list[PendingEntry] = []
        self._sent: dict[str, list[PendingEntry]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._attempts: set[asyncio.Task[None]] = set()
        self._barrier: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, *, durability: str = "full") -> "NatsLog":
        """Open the log in this stream, which is created if it is missing."""
        if durability not in SYNCHRONOUS:
            raise StoreError(f"Durability is one of {', '.join(SYNCHRONOUS)}, not {durability!r}")
        address = NatsAddress.from_url(url)
        stream = await JetStream.connect(address)
        try:
            created = await stream.ensure_stream()
            copy = await LocalCopy.open(address.copy, address.stream, created)
        except BaseException as error:
            await stream.close()
            if isinstance(error, ApiError):
                raise store_error(address, error) from error
            raise
        log = cls(stream, copy)
        stream.client._reconnected_cb = log._on_reconnected  # noqa: SLF001 - set before use
        log._follower.start()
        try:
            await log._catch_up()
        except BaseException:
            await log.close()
            raise
        return log

    async def claim_server(self) -> None:
        """Be the one server of this log; StoreError while another server is."""
        self._check_open()
        await self._claim.take()

    async def link_servers(self) -> SingleServerLink:
        """Be the one server of this log, since signals between servers need PostgreSQL yet."""
        await self.claim_server()
        return SingleServerLink()

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_append(stream, expected, rows)
        await self._put(Append.of(stream, expected, rows))

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        await self._catch_up()
        return await self._log.read(stream, after, limit)

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        await self._catch_up()
        return await self._log.find(stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        await self._catch_up()
        return await self._log.streams(prefix)

    async def position(self) -> int:
        await self._catch_up()
        return await self._log.position()

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        async for batch in self._log.tail(after):
            yield batch

    async def cursor(self, name: str) -> int:
        await self._catch_up()
        return await self._log.cursor(name)

    async def cursors(self) -> dict[str, int]:
        """The positions that workers have reached, by name."""
        await self._catch_up()
        return {
            name: position
            for name, position in (await self._log.cursors()).items()
            if not name.startswith("nats:")
        }

    async def advance(self, name: str, position: int) -> None:
        await self._put(Advance(name, position))

    async def snapshot(self, stream: str) -> Snapshot | None:
        """Of this server alone: a snapshot is a cache."""
        return await self._log.snapshot(stream)

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._log.save_snapshot(stream, snapshot)

    async def heads(self, stream: str) -> list[SignedHead]:
        await self._catch_up()
        return await self._log.heads(stream)

    async def signed_version(self, stream: str) -> int:
        await self._catch_up()
        return await self._log.signed_version(stream)

    async def signature_coverage(self) -> SignatureCoverage:
        await self._catch_up()
        return await self._log.signature_coverage()

    async def add_head(self, head: SignedHead) -> None:
        await self._put(Head.of(head))

    async def begin_behind_cut(self, cut: RetentionCut) -> None:
        """Refused: messages are never removed from the stream, so no stream begins later."""
        detail = f"The beginning of {cut.stream} was removed, and a log in NATS keeps everything"
        raise StoreError(f"{detail}; copy it to another kind of store")

    def sizes(self) -> dict[str, int]:
        """Bytes of the local copy."""
        return self._log.sizes()

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._send_pending()
        waiting = [each.done for sent in self._sent.values() for each in sent]
        if waiting:
            await asyncio.wait(waiting, timeout=CLOSE_TIMEOUT_S)
        for task in (*self._sending, *([self._barrier] if self._barrier else [])):
            task.cancel()
        await self._follower.close()
        await self._stream.close()
        await self._copy.close()

    async def _put(self, entry: Entry) -> None:
        """Send the entry with all others of this turn of the loop; returns once it is applied."""
        self._check_open()
        if self._follower.failure:
            raise self._follower.failure
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._unsent:
            loop.call_soon(self._send_pending)
        self._unsent.append(PendingEntry(entry, done))
        await done

    def _send_pending(self) -> None:
        pending, self._unsent = self._unsent, []
        if not pending:
            return
        nonce = secrets.token_hex(12)
        self._sent[nonce] = pending
        task = asyncio.create_task(self._send(nonce, [each.entry for each in pending]))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, nonce: str, entries: list[Entry]) -> None:
        """Send until it is stored, and wait for the outcome, within the time for answers."""
        data = encode(nonce, entries)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                while nonce in self._sent and not await self._attempt(nonce, data):
                    pass
                if pending := self._sent.get(nonce):
                    await asyncio.wait([each.done for each in pending])
        except (ApiError, TimeoutError) as error:
            for each in self._sent.pop(nonce, ()):
                if not each.done.done():
                    each.done.set_exception(store_error(self._stream.address, error))

    async def _attempt(self, nonce: str, data: bytes) -> bool:
        """Whether it is stored now; ApiError if it never will be.

        JetStream stores a message that it gets twice once. A new connection ends the attempt.
        """
        attempt = asyncio.ensure_future(self._stream.publish(nonce, data))
        self._attempts.add(attempt)
        try:
            await asyncio.wait([attempt])
            attempt.result()
        except ApiError as error:
            if not error.is_temporary:
                raise
        except ATTEMPT_ERRORS:
            if not attempt.done():  # it is this task that was cancelled
                attempt.cancel()
                raise
        else:
            return True
        finally:
            self._attempts.discard(attempt)
        await asyncio.sleep(RETRY_INTERVAL_S)
        return False

    async def _apply(self, received: list[ReceivedMessage]) -> None:
        """Apply messages to the copy, and answer those that this server sent."""
        outcomes = await self._copy.apply(received)
        is_foreign = False
        for each, results in zip(received, outcomes, strict=True):
            pending = self._sent.pop(each.message.nonce, None)
            if pending is None:
                is_foreign = True
                continue
            for entry, outcome in zip(pending, results, strict=True):
                if entry.done.done():
                    continue
                if outcome is None:
                    entry.done.set_result(None)
                else:
                    entry.done.set_exception(outcome)
        if is_foreign:
            self._log.wake_followers()

    def _fail_all(self, error: StoreError) -> None:
        for pending in self._sent.values():
            for each in pending:
                if not each.done.done():
                    each.done.set_exception(error)
        self._sent.clear()

    async def _on_reconnected(self) -> None:
        self._follower.reattach()
        for attempt in self._attempts:
            attempt.cancel()

    async def _catch_up(self) -> None:
        """Wait until the copy has everything that is stored now.

        Reads of one turn of the loop share a request.
        """
        self._check_open()
        if self._barrier is None:
            self._barrier = asyncio.create_task(self._run_barrier())
        try:
            await asyncio.shield(self._barrier)
        except asyncio.CancelledError:
            self._check_open()
            raise

    async def _run_barrier(self) -> None:
        self._barrier = None  # a read that begins from here on needs a newer answer
        await self._follower.reach(await self._stream.last_sequence())

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError(f"The log {self._stream.address} is closed")


async def has_log(url: str) -> bool:
    """Whether the stream exists; StoreError if NATS cannot be reached."""
    stream = await JetStream.connect(NatsAddress.from_url(url))
    try:
        return await stream.find_stream() is not None
    finally:
        await stream.close()
