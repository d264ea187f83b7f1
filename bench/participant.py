"""Participants of a PVP session, for measurements that follow one message to everybody.

Texts that count are marked, `@@<number>:<sent, ns>@@`, and need no escaping, so a receiver cuts
number and time out of a frame without parsing it.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import orjson
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

from bench.adapters import CONFIG, envelope

TEXT, CLOSE = WSMsgType.TEXT, WSMsgType.CLOSE
MARK = b"@@"
NEVER = 1 << 60
RECEIVE_TIMEOUT_S = 60.0
LARGEST_FRAME = 64 << 20
Frame = dict[str, Any]


def new_id(what: str) -> str:
    """An id nobody has used."""
    return f"{what}_{uuid4().hex[:22]}"


class Participant(WSListener):
    """One connection: counts marked frames, keeps the others to be waited for."""

    def __init__(self, seat: str) -> None:
        self.seat = seat
        self.inbox: list[bytes] = []
        self.wake = asyncio.Event()
        self.closed = False
        self.wanted = NEVER
        self.reached = asyncio.Event()
        self.reset()

    def reset(self, *, times: bool = False) -> None:
        """Count from nothing again."""
        self.count, self.last, self.in_order = 0, -1, True
        self.times = times
        self.latencies: list[int] = []
        self.inbox.clear()

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002 - picows' shape
        self.closed = True
        self.wake.set()

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type is TEXT:
            self._on_message(frame.get_payload_as_bytes())
        elif frame.msg_type is CLOSE:
            transport.disconnect()

    def _on_message(self, data: bytes) -> None:
        start = data.find(MARK)
        if start < 0:
            self.inbox.append(data)
            self.wake.set()
            return
        number, sent = data[start + 2 : data.find(MARK, start + 2)].split(b":")
        if int(number) != self.last + 1:
            self.in_order = False
        self.last = int(number)
        self.count += 1
        if self.times:
            self.latencies.append(time.monotonic_ns() - int(sent))
        if self.count >= self.wanted:
            self.wanted = NEVER
            self.reached.set()

    def send(self, data: bytes) -> None:
        """One frame."""
        self.transport.send(TEXT, data)

    def leave(self) -> None:
        """Hang up."""
        self.transport.disconnect()

    async def until(self, count: int) -> None:
        """Wait for so many marked frames."""
        if self.count < count:
            self.reached.clear()
            self.wanted = count
            await asyncio.wait_for(self.reached.wait(), RECEIVE_TIMEOUT_S)

    async def frame(self, wanted: Callable[[Frame], bool]) -> Frame:
        """The first frame that is wanted; an error ends the measurement."""
        deadline = time.monotonic() + RECEIVE_TIMEOUT_S
        seen = 0
        while True:
            while seen < len(self.inbox):
                found: Frame = orjson.loads(self.inbox[seen])
                seen += 1
                if found["type"] == "error":
                    raise RuntimeError(f"{self.seat} was refused: {found['payload']}")
                if wanted(found):
                    return found
            if self.closed:
                raise RuntimeError(f"{self.seat} was cut off")
            self.wake.clear()
            await asyncio.wait_for(self.wake.wait(), deadline - time.monotonic())


async def connect(url: str, kind: str = "p") -> Participant:
    """A participant of its own name."""
    one = Participant(new_id(kind))
    await ws_connect(lambda: one, url, max_frame_size=LARGEST_FRAME)
    return one


async def create(one: Participant) -> str:
    """A new session."""
    session, asked = new_id("ses"), new_id("m")
    said = {"name": "bench", "config": CONFIG}
    one.send(envelope("session.create", asked, session, one.seat, said))
    made = await one.frame(
        lambda f: f["type"] == "session.create" and (f["session"] == session or f["id"] == asked)
    )
    return str(made["session"])  # a server may have a name of its own for it


async def join(one: Participant, session: str, kind: str = "human", role: str = "observer") -> None:
    """In: the announcement that answers the join is here."""
    asked = new_id("m")
    participant = {
        "id": one.seat,
        "name": one.seat,
        "type": kind,
        "roles": [role],
        "capabilities": [],
        "transport": "websocket",
    }
    said = {"participant": participant, "supported_versions": [1]}
    one.send(envelope("session.join", asked, session, one.seat, said))
    await one.frame(
        lambda f: (
            f["type"] == "participant.announce"
            and (f.get("ref") == asked or one.seat in subjects(f["payload"]))
        )
    )


def subjects(announced: Frame) -> tuple[object, ...]:
    """Whom an announcement is about, in either of its shapes."""
    return announced.get("id"), (announced.get("participant") or {}).get("id")


class Room:
    """A session with a human driver, an agent that streams, and observers."""

    def __init__(self, session: str, people: list[Participant]) -> None:
        self.session = session
        self.people = people
        self.human, self.agent = people[0], people[1]
        self.receivers = [one for one in people if one is not self.agent]
        self.stream = ""
        self.sent = 0

    @classmethod
    async def open(cls, url: str, participants: int) -> "Room":
        """Everybody in, and the agent's response open."""
        human = await connect(url, "h")
        session = await create(human)
        await join(human, session, role="driver")
        agent = await connect(url, "a")
        await join(agent, session, kind="agent", role="driver")
        people = [human, agent]
        for _ in range(participants - 2):
            one = await connect(url)
            await join(one, session)
            people.append(one)
        room = cls(session, people)
        await room.start_response()
        return room

    async def start_response(self) -> None:
        """A prompt, and the response that chunks belong to."""
        asked, self.stream = new_id("m"), new_id("m")
        prompt = {
            "content": "bench",
            "target_agent": self.agent.seat,
            "contributors": [self.human.seat],
            "context_keys": [],
        }
        self.human.send(envelope("prompt.submit", asked, self.session, self.human.seat, prompt))
        await self.agent.frame(lambda f: bool(f["id"] == asked))
        start = {"agent": self.agent.seat, "prompt_ref": asked}
        self.agent.send(
            envelope("response.start", self.stream, self.session, self.agent.seat, start, ref=asked)
        )
        await self.human.frame(lambda f: bool(f["id"] == self.stream))
        self.reset()

    def reset(self, *, times: bool = False) -> None:
        """Count from nothing."""
        self.sent = 0
        for one in self.people:
            one.reset(times=times)

    def chunk(self, number: int, sent_ns: int = 0) -> bytes:
        """A marked chunk of 64 bytes of text."""
        text = f"@@{number}:{sent_ns}@@".ljust(64, "p")
        said = {"text": text}
        agent = self.agent.seat
        id = f"{self.stream}-{number}"
        return envelope("response.chunk", id, self.session, agent, said, ref=self.stream)

    async def push(self, frames: list[bytes], window: int) -> None:
        """Send all, never more than `window` ahead of the slowest receiver."""
        upto = self.sent + len(frames)
        while self.sent < upto:
            slow = min(self.receivers, key=lambda one: one.count)
            room = window - (self.sent - slow.count)
            if room > 0:
                for frame in frames[len(frames) - (upto - self.sent) :][:room]:
                    self.agent.send(frame)
                    self.sent += 1
                await asyncio.sleep(0)
            else:
                await slow.until(slow.count + max(1, window // 4))
        await self.until_delivered()

    async def until_delivered(self) -> None:
        """Everybody has everything, once and in order; a server may spare the sender its own."""
        for one in self.receivers:
            await one.until(self.sent)
        if self.agent.count:
            await self.agent.until(self.sent)
        for one in (*self.receivers, *([self.agent] if self.agent.count else [])):
            if one.count != self.sent or not one.in_order:
                raise RuntimeError(f"{one.seat} heard {one.count} of {self.sent}, or in disorder")

    def leave(self) -> None:
        """Everybody hangs up."""
        for one in self.people:
            one.leave()
