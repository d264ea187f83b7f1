"""Keeps a second server away from a log that only one may serve, by asking on a subject.

No clock takes part: the clocks of two machines differ. A server that has the claim refuses everyone
who asks. Of servers that ask at the same time, the one with the lowest number gets it: each hears
the number of the others in their questions or in their answers.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

import msgspec
from nats.aio.msg import Msg

from accord.engine.ports import Claim, ServerListener, StoreError
from accord.stores.nats.errors import CONNECTION_ERRORS, store_error
from accord.stores.nats.jetstream import JetStream

# How long a server that is there may take to answer.
ANSWER_S = 1.0
CLAIM_BITS = 62


class Stage(Enum):
    """How far a server is with its claim."""

    NONE = "none"
    ASKING = "asking"
    GRANTED = "granted"


class ClaimMessage(msgspec.Struct, frozen=True):
    """A question or an answer: whose claim it is, and whether that server has it."""

    number: int
    is_granted: bool = False


class ServerClaim:
    """The claim of one server; it answers all who ask later."""

    def __init__(self, stream: JetStream) -> None:
        self._stream = stream
        self._subject = f"{stream.address.stream}.server"
        self._number = secrets.randbits(CLAIM_BITS)
        self._stage = Stage.NONE
        self._is_first = True

    async def take(self) -> None:
        """Refused with StoreError if another server has the claim, or asks with a lower number."""
        if self._stage is not Stage.NONE:
            return
        self._stage, self._is_first = Stage.ASKING, True
        client = self._stream.client
        try:
            # First listen, then ask: of two that start together, at least the later one is heard.
            asked = await client.subscribe(self._subject, cb=self._on_question)
            inbox = client.new_inbox()
            answers = await client.subscribe(inbox, cb=self._on_answer)
            question = msgspec.json.encode(ClaimMessage(self._number))
            await client.publish(self._subject, question, reply=inbox)
            await client.flush()
            await asyncio.sleep(ANSWER_S)
            await client.flush()  # what is on its way to us arrives first
            await answers.unsubscribe()
            if not self._is_first:
                self._stage = Stage.NONE
                await asked.unsubscribe()
                detail = f"Another server uses {self._stream.address}; stop it first"
                raise StoreError(f"{detail}, or name another stream", str(self._stream.address))
        except CONNECTION_ERRORS as error:
            self._stage = Stage.NONE
            raise store_error(self._stream.address, error) from error
        self._stage = Stage.GRANTED

    async def _on_answer(self, answer: Msg) -> None:
        self._hear(decode_claim(answer))

    async def _on_question(self, question: Msg) -> None:
        """Answer another server, which may ask at the same time as this one."""
        other = decode_claim(question)
        if other is None or other.number == self._number or self._stage is Stage.NONE:
            return
        own = ClaimMessage(self._number, self._stage is Stage.GRANTED)
        await question.respond(msgspec.json.encode(own))
        self._hear(other)

    def _hear(self, other: ClaimMessage | None) -> None:
        if other is not None and self._stage is Stage.ASKING:
            self._is_first &= not other.is_granted and self._number < other.number


def decode_claim(message: Msg) -> ClaimMessage | None:
    """None for what no server of this version sent."""
    try:
        return msgspec.json.decode(message.data, type=ClaimMessage)
    except msgspec.DecodeError:
        return None


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
