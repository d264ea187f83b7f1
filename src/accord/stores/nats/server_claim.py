"""Keeps a second server away from a log that only one may serve, by asking on a subject."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from accord.engine.ports import Claim, ServerListener, StoreError
from accord.stores.nats.errors import CONNECTION_ERRORS, store_error
from accord.stores.nats.jetstream import JetStream

# How long a server that is there may take to answer.
ANSWER_S = 0.5


class ServerClaim:
    """The server that asked first keeps the log; it answers all who ask later."""

    def __init__(self, stream: JetStream) -> None:
        self._stream = stream
        self._subject = f"{stream.address.stream}.server"
        self._mark: tuple[int, str] | None = None

    async def take(self) -> None:
        """Refused with StoreError if another server answers that was there before."""
        if self._mark is not None:
            return
        self._mark = (time.time_ns(), secrets.token_hex(8))
        client = self._stream.client
        try:
            # First answer others, then ask: of two that start together, both see each other.
            await client.subscribe(self._subject, cb=self._answer)
            inbox = client.new_inbox()
            answers = await client.subscribe(inbox)
            await client.publish(self._subject, b"", reply=inbox)
            await client.flush()
            await self._check(answers)
            await answers.unsubscribe()
        except CONNECTION_ERRORS as error:
            raise store_error(self._stream.address, error) from error

    async def _check(self, answers: object) -> None:
        deadline = asyncio.get_running_loop().time() + ANSWER_S
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                answer: Msg = await answers.next_msg(timeout=left)  # type: ignore[attr-defined]  # a subscription
            except TimeoutError:
                return
            at, name = json.loads(answer.data)
            if (at, name) < (self._mark or (0, "")):
                self._mark = None
                detail = f"Another server uses {self._stream.address}; stop it first"
                raise StoreError(f"{detail}, or name another stream", str(self._stream.address))

    async def _answer(self, question: Msg) -> None:
        if self._mark:
            await question.respond(json.dumps(self._mark).encode())


class SingleServerLink:
    """Implements `ServerLink` for the one server that has claimed the log: there are no others."""

    id = 1
    others: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self._listener: ServerListener | None = None

    async def find_others(self) -> frozenset[int]:
        """None: the claim keeps them away."""
        return self.others

    async def start(self, listener: ServerListener) -> None:
        """Remember who gets signals."""
        self._listener = listener

    def send(self, text: bytes) -> None:
        """This server gets its own signals, in order."""
        if self._listener:
            asyncio.get_running_loop().call_soon(self._listener.on_signals, self.id, text)

    def claim(self, claim: Claim) -> None:
        """There is no one to tell."""

    def release(self, claim: Claim) -> None:
        """There is no one to tell."""

    @asynccontextmanager
    async def lead(self, task: str) -> AsyncIterator[asyncio.Event]:
        """Every task is this server's."""
        del task
        yield asyncio.Event()

    async def stop(self, *, hand_over: bool) -> None:
        """Send nothing more."""
        del hand_over
        self._listener = None
