"""Lines of a program and messages of a server, between them the relay that `accord stdio` is."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.cli.stdio.line_io import InputLine, LineSplitter
from accord.cli.stdio.relay import JoinedSession, StdioRelay, is_utf8
from accord.client.connection.backoff import RetryPolicy
from accord.client.connection.reconnect import ReconnectLoop
from accord.client.connection.websocket import CONNECTION_ERRORS
from accord.client.envelope import parse_head
from accord.client.identity import Identity, parse_address
from accord.core.kernel.role_permissions import Role
from tests.core.dialects.envelopes import PAYLOADS, envelope
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput

MAX_LINE_BYTES = 2048
CONNECTION_LOST = b"!"
MARK = b'"seq"'  # whatever says where it stands comes from the server
IDENTITY = Identity("claude", "agent", "Claude", (Role.DRIVER,))


def message_line(name: str, id: str, **more: Any) -> bytes:
    """One envelope of the program's, or with `seq` of the server's."""
    return json.dumps(envelope(name, id=id, session="s", **more)).encode()


def seeds() -> Iterator[bytes]:
    """A whole conversation with two losses, and a line of each type there and back."""
    error = {"code": "RATE_LIMITED", "message": "Wait", "recoverable": True, "related_to": "p2"}
    talk = [
        message_line("session.join", "j"),
        message_line("session.join", "j", seq=1),
        message_line("participant.announce", "a", seq=2),
        message_line("prompt.submit", "p1"),
        message_line("prompt.submit", "p1", seq=3),
        message_line("prompt.submit", "p2"),
        message_line("error", "e", seq=0, payload=error),
        message_line("prompt.draft", "d"),
        CONNECTION_LOST,
        message_line("participant.announce", "a", seq=2),
        message_line("prompt.submit", "p1", seq=3),
        message_line("response.start", "r", seq=4, sender="codex"),
        message_line("prompt.submit", "p3"),
        CONNECTION_LOST,
        message_line("response.end", "n", seq=5, sender="codex").replace(b": ", b":\t"),
        message_line("session.leave", "l"),
        message_line("session.leave", "l", seq=6),
        b"x" * (MAX_LINE_BYTES + 1),
        b"",
    ]
    yield b"\n".join(talk)
    # A server that is none.
    odd = [
        message_line("error", "e", seq=0, payload={"code": {}, "related_to": []}),
        message_line("session.leave", "l", seq=9, payload={"participant": {}}),
        message_line("prompt.submit", "p", seq=9).replace(b"Please", b"\xff"),
    ]
    yield b"\n".join((*talk[:3], *odd))
    for name in sorted(PAYLOADS):
        yield b"\n".join(
            (
                message_line(name, "m"),
                message_line(name, "m", seq=1),
                CONNECTION_LOST,
                message_line(name, "m", seq=1),
            )
        )


class RelayEnds:
    """Both ends of a relay: what the input says happens, in its order."""

    def __init__(self, data: bytes) -> None:
        self.script = data.split(b"\n")[::-1]
        address = parse_address("http://127.0.0.1:1")
        self.relay = StdioRelay(ReconnectLoop(address, IDENTITY, "fuzz", RetryPolicy()))
        self.relay.put = self.put
        self.splitter = LineSplitter(MAX_LINE_BYTES, 64)
        self.told: list[bytes] = []
        self.sent: list[str] = []
        self.reached: dict[str, int] = {}
        self.doubtful: str | None = None

    async def run(self) -> None:
        """To the end of the script, over as many connections as it takes."""
        while self.script:
            self.sent.clear()
            try:
                await self.relay._run_connection(self)  # type: ignore[arg-type]
            except CONNECTION_ERRORS as error:
                self.lose(str(error))

    def lose(self, why: str) -> None:
        """Whoever waits for an answer is told so, once."""
        waiting = set(self.relay.pending)
        before = len(self.told)
        self.relay._on_connection_lost(why)
        refs = Counter(json.loads(each)["payload"].get("related_to") for each in self.told[before:])
        assert not self.relay.pending
        assert all(refs[id] == 1 for id in waiting), "somebody waits for ever"

    # As the server's end of a connection

    async def send(self, text: str) -> None:
        """What goes out is a message, on one line."""
        assert parse_head(text.encode()) is not None
        assert "\n" not in text
        self.sent.append(text)

    async def recv(self, *, decode: bool) -> bytes:
        """The next message; meanwhile the program says what it says."""
        assert not decode
        while self.script:
            line = self.script.pop()
            if line == CONNECTION_LOST:
                break
            if MARK in line:
                line = line.replace(b"\t", b"\n")  # in here a line break ends a message
                self.expect(line)
                return line
            for piece in (line[: len(line) // 2], line[len(line) // 2 :] + b"\n"):
                for each in self.splitter.feed(piece):
                    await self.say(each)
        raise ConnectionResetError("lost")

    async def say(self, line: InputLine) -> None:
        """A line is sent as it is, or answered with why not; never both, never neither."""
        sent, told = len(self.sent), len(self.told)
        await self.relay.send_line(line)
        blank = not line.data.strip()
        assert (len(self.sent) - sent) + (len(self.told) - told) == (0 if blank else 1)
        if len(self.sent) > sent:
            assert self.sent[-1] == line.data.strip().decode()

    def expect(self, data: bytes) -> None:
        """In a session each place is heard once, in order, but for the answer to who asks again."""
        said = parse_head(data) if is_utf8(data) else None
        if said is None or said.type == "error":
            return
        for gone in self.reached.keys() - self.relay.joined.keys():
            del self.reached[gone]
        self.doubtful = None
        known, asked = said.session in self.relay.joined, said.id in self.relay.pending
        if known and said.seq:
            old = said.seq <= self.reached.get(said.session, 0)
            self.doubtful = said.id if old and not asked else None
            self.reached[said.session] = max(said.seq, self.reached.get(said.session, 0))

    def put(self, data: bytes) -> None:
        """What the program hears: one message a line, none twice."""
        heard = json.loads(data)
        assert heard["type"] == "error" or heard["id"] != self.doubtful, "heard twice"
        assert b"\n" not in data
        mark_reached(heard["type"])
        self.told.append(data)


def make_runner(place: Path) -> FuzzInput:
    """A relay of its own for each."""
    return lambda data: asyncio.run(RelayEnds(data).run())


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """What was heard before is told again."""
    patch.setattr(JoinedSession, "is_new", lambda *_: True)
