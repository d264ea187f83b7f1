"""PVP between lines and a server: what is said once arrives once, also over lost connections."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder
from websockets.asyncio.client import ClientConnection

from accord.cli.pipes import Line
from accord.client.backoff import Backoff, Retry
from accord.client.envelope import LARGEST_FRAME, Head, head
from accord.client.hub import fresh_id, now
from accord.client.identity import Address, Identity
from accord.client.link import Unwatched, Watch
from accord.client.socket import (
    LOSSES,
    asked_to_wait,
    closing_words,
    open_socket,
    unreachable,
    verdict,
)
from accord.core.dialects import pvp
from accord.core.kernel.limits import reached
from accord.core.kernel.log import Lifetime
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.core.room.heartbeats import HeartbeatPing

log = logging.getLogger("accord.stdio")

MOST_PENDING = 10_000
MOST_UNNUMBERED = 4096
LEAVE_SECONDS = 10
LAST_ANSWER_SECONDS = 2
LONGEST_WORDS = 500
JOIN, CREATE, LEAVE, END = "session.join", "session.create", "session.leave", "session.end"
ANNOUNCE, ERROR = "participant.announce", "error"
WAYS_IN = frozenset({JOIN, CREATE})
# These come unanswered where all is well.
UNANSWERED = frozenset(
    name
    for name, body in pvp.BODIES.items()
    if body.lifetime is Lifetime.SIGNAL and name != HeartbeatPing.type
)
# A way back in that is refused for these reasons is tried again.
PASSING = frozenset({"INTERNAL_ERROR", "RATE_LIMITED"})

# Between the parts of a message a line break is a space, and a line is one message.
ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class _About(Struct, frozen=True):
    participant: str | None = None
    related_to: str | None = None
    code: str = ""


_NOTHING = _About()
_about_decoded = Decoder(_About).decode


def _about(payload: Raw) -> _About:
    """What a message is about; one that is not as it should be is about nothing."""
    try:
        return _about_decoded(payload)
    except (msgspec.MsgspecError, RecursionError):
        return _NOTHING


class Place:
    """A session one is in: how to come back into it, and what was heard last."""

    def __init__(self, sender: str, payload: Raw) -> None:
        self.sender = sender
        self.payload = payload
        self.last: str | None = None
        self.seq = 0
        self.unnumbered: OrderedDict[str, None] = OrderedDict()

    def is_new(self, said: Head) -> bool:
        """Each message once: by its place, or by its id where it has none."""
        if said.seq:
            if said.seq <= self.seq:
                return False
            self.seq, self.last = said.seq, said.id
            if said.type != ANNOUNCE:
                return True
        elif said.id in self.unnumbered:
            return False
        self.unnumbered[said.id] = None
        if len(self.unnumbered) > MOST_UNNUMBERED:
            self.unnumbered.popitem(last=False)
        return True


class Relay:
    """Lines go out as messages, messages come in as lines."""

    def __init__(self, where: Address, who: Identity, runtime: str, retry: Retry) -> None:
        self.where = where
        self.who = who
        self.runtime = runtime
        self.backoff = Backoff(retry)
        self.watch: Watch = Unwatched()
        self.put: Callable[[bytes], None] = lambda _: None
        self.room: Callable[[], Awaitable[None]] = no_wait
        self.socket: ClientConnection | None = None
        self.connected = asyncio.Event()
        self.places: dict[str, Place] = {}
        self.pending: OrderedDict[str, pvp.Envelope] = OrderedDict()
        self.ways_back: dict[str, str] = {}
        self.farewells: dict[str, str] = {}
        self.leaving = False
        self.answered = asyncio.Event()
        self.start_over = False

    # Out

    async def take(self, line: Line) -> None:
        """One line of the input: sent, or answered with why not."""
        await self.room()
        if not line.data.strip():
            return
        try:
            said = self._read(line)
        except Refused as no:
            self._refuse(no, *pvp.gist(line.data))
            return
        awaited = said.type not in UNANSWERED
        if awaited:
            self._await(said)
        try:
            await self._send(line.data.strip().decode())
        except LOSSES as error:
            # Whatever waited for its answer was told of the loss already.
            if not awaited or self.pending.pop(said.id, None) is not None:
                self._fail(f"It was not sent: {error}", said.session, said.id)

    def _read(self, line: Line) -> pvp.Envelope:
        if not line.whole:
            limit = f"A line may have {LARGEST_FRAME} bytes, and a message {pvp.LARGEST_MESSAGE}"
            raise reached("message", pvp.LARGEST_MESSAGE, limit)
        said = pvp.opened(line.data)
        pvp.check(said)
        return said

    def _await(self, said: pvp.Envelope) -> None:
        self.pending[said.id] = said
        if len(self.pending) > MOST_PENDING:
            self.pending.popitem(last=False)

    async def _send(self, text: str) -> None:
        if self.socket is None:
            raise ConnectionError("there is no connection to the server")
        await self.socket.send(text)

    # In

    async def run(self) -> None:
        """Connect, and connect again; raises what makes that useless."""
        met = False
        while True:
            pause = 0.0
            try:
                socket = await open_socket(self.where, self.who, self.runtime)
                met = True
                self.backoff.opened()
                self.watch.back()
                try:
                    await self._converse(socket)
                finally:
                    await socket.close()
            except LOSSES as error:
                final = verdict(error, self.where.base)
                if final is None and not met:
                    final = unreachable(error, self.where.base)
                self._lost(str(final or closing_words(error) or error))
                if final is not None:
                    raise final from error
                self.watch.lost(closing_words(error))
                pause = asked_to_wait(error)
            await self.backoff.wait(pause)

    async def _converse(self, socket: ClientConnection) -> None:
        """Back into every session, then whatever comes."""
        self.start_over = False
        for text in list(self._goodbyes() if self.leaving else self._ways_back()):
            await socket.send(text)
        self.socket = socket
        self.connected.set()
        while not self.start_over:
            self._hear(await socket.recv(decode=False))
            await self.room()
        self._lost("the server could not let us in again just now")

    def _ways_back(self) -> Iterator[str]:
        """What brings us into each session again, behind what we heard last (OPEN-37)."""
        for session, place in self.places.items():
            id = fresh_id()
            self.ways_back[id] = session
            yield written(id, session, place.sender, JOIN, place.payload, place.last)

    def _lost(self, why: str) -> None:
        """Every session hears of it, and so does whoever waits for an answer (PVP 19.5)."""
        if self.socket is None:
            return
        self.socket = None
        self.connected.clear()
        self.ways_back.clear()
        for session in self.places:
            self._fail(f"The connection was lost: {why}", session)
        pending, self.pending = self.pending, OrderedDict()
        self.answered.set()
        for id, said in pending.items():
            again = "it may have arrived; sent again with the same id it counts once"
            self._fail(f"The connection was lost before an answer, and {again}", said.session, id)

    def _hear(self, data: bytes) -> None:
        said = head(data) if is_text(data) else None
        if said is None:
            log.warning("what the server sent is no envelope: %.200r", data)
            return
        if said.type == ERROR:
            if self._refused(said):
                return
        elif not self._accepted(said):
            return
        self.put(data.translate(ONE_LINE))

    def _answer(self, id: str) -> pvp.Envelope | None:
        self.answered.set()
        return self.pending.pop(id, None)

    def _accepted(self, said: Head) -> bool:
        """Whether it is news to the reader."""
        asked = self._answer(said.id)
        if asked is not None and asked.type in WAYS_IN and said.session not in self.places:
            self.places[said.session] = Place(asked.sender, self._join_of(asked))
        self.ways_back.pop(said.id, None)
        place = self.places.get(said.session)
        news = place is None or place.is_new(said) or asked is not None
        if place is not None and self._ends(said, place):
            self._drop(said.session)
        return news

    def _join_of(self, asked: pvp.Envelope) -> Raw:
        """How to come back: as one came, or as the creator that one is."""
        if asked.type == JOIN:
            return asked.payload
        who = {
            "id": asked.sender,
            "name": asked.sender,
            "type": self.who.kind,
            "roles": self.who.roles,
            "transport": "stdio",
        }
        return Raw(pvp.encode({"participant": who, "supported_versions": [pvp.VERSION]}))

    def _ends(self, said: Head, place: Place) -> bool:
        if said.type == END:
            return True
        if said.type != LEAVE:
            return False
        return place.sender in {said.sender, _about(said.payload).participant}

    def _refused(self, said: Head) -> bool:
        """An error; whether nobody needs to hear of it."""
        about = _about(said.payload)
        related = about.related_to or ""
        self._answer(related)
        back, farewell = self.ways_back.pop(related, None), self.farewells.pop(related, None)
        if back is not None and about.code in PASSING:
            self.start_over = True
            return True
        if (over := back or farewell) is not None:
            self._drop(over)
        return farewell is not None

    # The end

    async def leave(self) -> None:
        """Say goodbye in every session and wait until it is heard; raises TimeoutError."""
        async with asyncio.timeout(LEAVE_SECONDS):
            await self._until(lambda: not any(p.type in WAYS_IN for p in self.pending.values()))
            self.leaving = True
            with suppress(*LOSSES):
                for text in list(self._goodbyes()) if self.socket else ():
                    await self._send(text)
            await self._until(lambda: not self.places)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWER_SECONDS):
                await self._until(lambda: not self.pending)

    async def _until(self, over: Callable[[], bool]) -> None:
        while not over():
            self.answered.clear()
            await self.answered.wait()

    def _goodbyes(self) -> Iterator[str]:
        self.farewells.clear()
        for session, place in self.places.items():
            id = fresh_id()
            self.farewells[id] = session
            yield written(id, session, place.sender, LEAVE, Raw(b"{}"))

    def _drop(self, session: str) -> None:
        """Not in it any more."""
        self.places.pop(session, None)
        self.answered.set()

    def _refuse(self, no: Refused, session: str, related_to: str | None) -> None:
        self.put(pvp.refusal(fresh_id(), now(), session, no, related_to))

    def _fail(self, why: str, session: str, related_to: str | None = None) -> None:
        self._refuse(Refused(Why.TRANSPORT, why[:LONGEST_WORDS]), session, related_to)


def written(
    id: str, session: str, sender: str, type: str, payload: Raw, ref: str | None = None
) -> str:
    """A message of ours as text."""
    sent = pvp.Sent(pvp.VERSION, id, iso(now()), session, sender, type, payload, ref)
    return pvp.encode(sent).decode()


def is_text(data: bytes) -> bool:
    """Whether the program can read it; what a decoder passes over may be no UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


async def no_wait() -> None:
    """There is room."""
