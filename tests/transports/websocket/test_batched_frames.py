"""What comes in one read of a socket: heard in order, and as it is heard one by one."""

import json
import socket
import struct
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.messages import ChunkBatch, Message
from accord.core.kernel.timestamps import to_iso
from accord.core.room.conversation.responses import ResponseChunk, ResponseStart
from accord.identity.token_signing import Keyring
from accord.transports.intake import AuthPolicy, Intake
from accord.transports.websocket.connection import MAX_MISTAKES
from tests.fuzz.websocket_frames import CLOSE, PING
from tests.helpers.attacks.raw_socket import frame, rest, upgraded
from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG, WebSocketClient
from tests.helpers.engine.harness import EngineHarness, PendingReply
from tests.helpers.room.chunk_batches import batch_chunks
from tests.helpers.room.scenario import ALICE, CLAUDE, ROOM, T0, prompt_submit
from tests.helpers.servers.server_process import ServerProcess, run_server

MARK = b"over"
NOWHERE = "nowhere"
LONG = {"text": "x" * 900}
BINARY, TEXT, PONG = 2, 0x81, 0x8A


# Its code, and which message it is about.
Error = tuple[str, str | None]


class Agent:
    """An agent that answers, on a bare socket."""

    def __init__(self, opened: socket.socket, session: str) -> None:
        self.opened = opened
        self.session = session
        self.unread = b""

    def say(self, type: str, payload: Any, **more: Any) -> bytes:
        """A message as a frame."""
        said = envelope(type, self.session, "claude", payload, **more)
        return frame(json.dumps(said).encode())

    def chunk(self, id: str, **more: Any) -> bytes:
        """A piece of the answer."""
        known: dict[str, Any] = {"id": id, "ref": "start", "payload": {"text": id}}
        said = envelope("response.chunk", self.session, "claude", {}) | known | more
        return frame(json.dumps(said).encode())

    def _read(self, size: int) -> bytes:
        while len(self.unread) < size:
            more = self.opened.recv(1 << 16)
            assert more, "the server has hung up"
            self.unread += more
        found, self.unread = self.unread[:size], self.unread[size:]
        return found

    def frame(self) -> tuple[int, bytes]:
        """The next frame of the server's."""
        kind, size = self._read(2)
        if size == 126:
            (size,) = struct.unpack("!H", self._read(2))
        return kind, self._read(size)

    def errors(self, frames: list[bytes]) -> list[Error]:
        """Send them at once; what is wrong with which of them, as far as it is seen at once."""
        self.opened.sendall(b"".join([*frames, frame(MARK, PING)]))
        found = []
        while (heard := self.frame()) != (PONG, MARK):
            found += error_in(*heard)
        return found

    def late_errors(self) -> list[Error]:
        """What was wrong with those for which something had to be looked up, here or elsewhere."""
        lasts = [self.chunk("here", ref="nothing"), self.chunk("there", session=NOWHERE)]
        self.opened.sendall(b"".join(lasts))
        found: list[Error] = []
        while not {"here", "there"} <= {id for _, id in found}:
            found += error_in(*self.frame())
        return [each for each in found if each[1] not in {"here", "there"}]


def error_in(kind: int, data: bytes) -> list[Error]:
    """The error in a frame, if it is one."""
    said: dict[str, Any] = json.loads(data) if kind == TEXT else {"type": ""}
    return [(said["payload"]["code"], said.get("ref"))] if said["type"] == "error" else []


Script = Callable[[Agent], list[bytes]]
SCRIPTS: dict[str, Script] = {
    "pieces": lambda a: [a.chunk(f"c{n}") for n in range(50)],
    "a piece that is none": lambda a: [a.chunk("c0"), a.chunk("c1", payload={}), a.chunk("c2")],
    "nonsense between": lambda a: [a.chunk("c0"), a.chunk("c1"), frame(b"{"), a.chunk("c2")],
    "nonsense first": lambda a: [frame(b"{"), a.chunk("c0"), a.chunk("c1")],
    "a binary frame between": lambda a: [a.chunk("c0"), frame(b"x", BINARY), a.chunk("c1")],
    "a ping between": lambda a: [a.chunk("c0"), a.chunk("c1"), frame(b"p", PING), a.chunk("c2")],
    "a piece in parts": lambda a: [
        a.chunk("c0"),
        a.chunk("c1"),
        *in_parts(a.chunk("c2")),
        a.chunk("c3"),
    ],
    "one again": lambda a: [a.chunk("c0"), a.chunk("c1"), a.chunk("c0"), a.chunk("c2")],
    "one id for two": lambda a: [
        a.chunk("c0"),
        a.say("response.chunk", {"text": "other"}, id="c0", ref="start"),
    ],
    "of somebody else": lambda a: [a.chunk("c0"), a.chunk("c1", sender="alice"), a.chunk("c2")],
    "of another answer": lambda a: [a.chunk("c0"), a.chunk("c1", ref="nothing"), a.chunk("c2")],
    "elsewhere": lambda a: [a.chunk("c0"), a.chunk("c1", session=NOWHERE), a.chunk("c2")],
    "the end between": lambda a: [
        a.chunk("c0"),
        a.chunk("c1"),
        a.say("response.end", {"finish_reason": "complete"}, id="end", ref="start"),
        a.chunk("c2"),
        a.chunk("c3"),
    ],
    "leaving between": lambda a: [
        a.chunk("c0"),
        a.chunk("c1"),
        a.say("session.leave", {}, id="leave"),
        a.chunk("c2"),
        a.chunk("c3"),
    ],
}

# What ends a connection, whatever came before.
BROKEN = {
    "of no kind": frame(b"x", 11),
    "not masked": b"\x81\x01x",
    "too large": frame(b"x", size=1 << 40),
    "a long ping": frame(b"x" * 200, PING),
}


def in_parts(whole: bytes) -> list[bytes]:
    """A frame of up to 64 KiB as two."""
    text = whole[8:]
    return [frame(text[:50], fin=False), frame(text[50:], 0)]


@asynccontextmanager
async def answering(server: ServerProcess) -> AsyncIterator[tuple[WebSocketClient, Agent]]:
    """Alice listens, and an agent has begun to answer her."""
    alice = await WebSocketClient.open(server.ws_url, "alice")
    session = await alice.create()
    prompt = {"content": "Go", "target_agent": "claude", "contributors": ["alice"]}
    with upgraded(server) as opened:
        agent = Agent(opened, session)
        opened.sendall(agent.say("session.join", join_payload("claude", "agent")))
        await alice.receive_until("session.join")
        await alice.send("prompt.submit", session, prompt | {"context_keys": []}, id="prompt")
        await alice.receive_until("prompt.submit")
        begin = {"agent": "claude", "prompt_ref": "prompt"}
        opened.sendall(agent.say("response.start", begin, id="start", ref="prompt"))
        opened.sendall(agent.chunk("first"))  # after which more of it flows
        await alice.receive_until("response.chunk")
        agent.errors([])
        yield alice, agent
    await alice.socket.close()


async def rest_of(alice: WebSocketClient, session: str) -> list[dict[str, Any]]:
    """All that alice has not heard yet."""
    note = {"key": "k", "content_type": "text", "content": ""}
    await alice.send("context.add", session, note)
    heard = [await alice.receive()]
    while heard[-1]["type"] != "context.add":
        heard.append(await alice.receive())
    return heard[:-1]


async def play(server: ServerProcess, script: Script, *, at_once: bool) -> tuple[Any, Any]:
    """What the room hears, and what the agent is told."""
    async with answering(server) as (alice, agent):
        frames = script(agent)
        reads = [frames] if at_once else [[each] for each in frames]
        errors = [each for read in reads for each in agent.errors(read)]
        errors += agent.late_errors()
        heard = await rest_of(alice, agent.session)
    told = [(each["type"], each.get("seq"), each.get("payload", {}).get("text")) for each in heard]
    return told, sorted(errors, key=str)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_at_once_is_as_one_by_one(trusting: ServerProcess, name: str) -> None:
    script = SCRIPTS[name]

    at_once = await play(trusting, script, at_once=True)

    assert at_once == await play(trusting, script, at_once=False)


async def test_pieces_before_a_goodbye_are_kept(trusting: ServerProcess) -> None:
    async with answering(trusting) as (alice, agent):
        frames = [agent.chunk(f"c{number}") for number in range(5)]
        agent.opened.sendall(b"".join([*frames, frame(b"", CLOSE)]))
        rest(agent.opened)
        heard = await rest_of(alice, agent.session)

    assert [each["id"] for each in heard if each["type"] == "response.chunk"] == [
        f"c{number}" for number in range(5)
    ]


# The last message that comes before one of these: whole, in parts, or the only one there is.
LASTS: dict[str, Script] = {
    "a piece of several": lambda a: [a.chunk("c0"), a.chunk("c1"), a.chunk("last")],
    "another message": lambda a: [
        a.chunk("c0"),
        a.say("response.end", {"finish_reason": "complete"}, id="last", ref="start"),
    ],
    "the only one": lambda a: [a.chunk("last")],
    "in parts": lambda a: [a.chunk("c0"), *in_parts(a.chunk("last"))],
    "with nonsense before": lambda a: [a.chunk("c0"), frame(b"{"), a.chunk("last")],
}


def closes(heard: bytes) -> int:
    """How many frames in what a server said end the connection."""
    found = 0
    while heard:
        size, start = heard[1], 2
        if size == 126:
            size, start = struct.unpack("!H", heard[2:4])[0], 4
        found += heard[0] == 0x80 | CLOSE
        heard = heard[start + size :]
    return found


@pytest.mark.parametrize("last", LASTS)
@pytest.mark.parametrize("broken", BROKEN)
async def test_what_comes_before_no_frame_is_heard(
    trusting: ServerProcess, broken: str, last: str
) -> None:
    """Picows looks at it first, and has closed the connection by the time it hands on the last."""
    async with answering(trusting) as (alice, agent):
        agent.opened.sendall(b"".join([*LASTS[last](agent), BROKEN[broken], agent.chunk("behind")]))
        said = rest(agent.opened)
        heard = [each["id"] for each in await rest_of(alice, agent.session)]

    assert heard[: heard.index("last") + 1] in (["c0", "c1", "last"], ["c0", "last"], ["last"])
    assert "behind" not in heard
    assert closes(said) == 1


@pytest.mark.parametrize("broken", [b"\x03\xe7", b"x", b"\x03\xe8\xff"])
async def test_what_comes_behind_a_broken_goodbye_is_not_heard(
    trusting: ServerProcess, broken: bytes
) -> None:
    """Picows goes on reading behind one, as soon as more comes."""
    async with answering(trusting) as (alice, agent):
        agent.opened.sendall(agent.chunk("last") + frame(broken, CLOSE) + agent.chunk("behind"))
        assert agent.frame()[0] == 0x80 | CLOSE
        agent.opened.sendall(agent.chunk("later"))
        rest(agent.opened)
        heard = [each["id"] for each in await rest_of(alice, agent.session)]

    assert "last" in heard
    assert not {"behind", "later"} & {*heard}


async def test_a_broken_goodbye_alone_ends_it(trusting: ServerProcess) -> None:
    async with answering(trusting) as (alice, agent):
        agent.opened.sendall(frame(b"x", CLOSE))
        assert agent.frame()[0] == 0x80 | CLOSE
        agent.opened.sendall(agent.chunk("later") + agent.chunk("latest"))
        rest(agent.opened)
        heard = [each["id"] for each in await rest_of(alice, agent.session)]

    assert not {"later", "latest"} & {*heard}


async def test_a_goodbye_before_no_frame_is_answered_once(trusting: ServerProcess) -> None:
    async with answering(trusting) as (_, agent):
        agent.opened.sendall(frame(b"\x03\xe8", CLOSE) + BROKEN["of no kind"])

        assert closes(rest(agent.opened)) == 1


@pytest.mark.parametrize("between", [b"", frame(b"p", PING)])
async def test_pieces_behind_the_end_are_not_heard(trusting: ServerProcess, between: bytes) -> None:
    """Also where something between them made the server look at what came before."""
    async with answering(trusting) as (alice, agent):
        nonsense = frame(b"{") * (MAX_MISTAKES + 1)
        agent.opened.sendall(nonsense + between + agent.chunk("c0") + agent.chunk("c1"))
        rest(agent.opened)
        heard = await rest_of(alice, agent.session)

    assert [each for each in heard if each["type"] == "response.chunk"] == []


async def test_batched_chunks_are_validated(trusting: ServerProcess) -> None:
    nonsense = [frame(b"{")] * (MAX_MISTAKES // 2 + 10)
    async with answering(trusting) as (_, agent):
        reads = (nonsense, [agent.chunk("c0"), agent.chunk("c1")], nonsense)
        errors = [len(agent.errors(read)) for read in reads]

    assert errors == [len(nonsense), 0, len(nonsense)]


async def test_batched_chunks_are_charged(tmp_path: Path) -> None:
    # As little as may be: however long it takes, hardly anything is made up for meanwhile.
    words = ("--rate-limit", "200", "--limit", "stream_bytes=1KiB", "--limit", "stream_burst=64KiB")
    with run_server(tmp_path, "open", *words) as server:
        async with answering(server) as (alice, agent):
            errors = []
            for read in range(10):
                ids = [f"{read}.{number}" for number in range(10)]
                errors += agent.errors([agent.chunk(id, payload=LONG) for id in ids])
            heard = await rest_of(alice, agent.session)

    assert {code for code, _ in errors} == {"RATE_LIMITED"}
    assert 30 < len(heard) < 70
    assert len(heard) + len(errors) == 100


async def test_whoever_comes_may_say_all_at_once(trusting: ServerProcess) -> None:
    session = uuid.uuid4().hex
    notes = [{"key": key, "content_type": "text", "content": "Hi"} for key in "abc"]
    first = envelope("session.create", session, "bob", {"config": SESSION_CONFIG})
    said = [first, *(envelope("context.add", session, "bob", each) for each in notes)]
    frames = b"".join(frame(json.dumps(each).encode()) for each in said)

    with upgraded(trusting) as opened:
        opened.sendall(frames)
        heard = b""
        while heard.count(b'"context.add"') < len(notes):
            more = opened.recv(1 << 16)
            assert more, heard
            heard += more


async def test_a_server_that_stops_takes_nothing_together(tmp_path: Path) -> None:
    stage = EngineHarness()
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ResponseStart("claude", "p"), "s")
    await stage.send(CLAUDE, ResponseChunk("more"), "c", "s")
    reception = Intake(stage.engine, AuthPolicy(Keyring.open(tmp_path), tuple))
    ear, answers = stage.peers["claude"], PendingReply()

    def piece(id: str) -> ChunkBatch:
        message = Message(id, to_iso(T0), ROOM, "claude", ResponseChunk("more"), "s")
        return next(batch_chunks([message]))

    assert reception.take_chunk_batch(piece("d"), CLAUDE, answers, ear)
    reception.closed = True
    assert not reception.take_chunk_batch(piece("e"), CLAUDE, answers, ear)
    await stage.close()
