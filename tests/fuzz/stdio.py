"""Lines of a program and messages of a server, between them the relay that `accord stdio` is."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.cli.pipes import Line, Splitter
from accord.cli.relay import Place, Relay, is_text
from accord.client.backoff import Retry
from accord.client.envelope import head
from accord.client.identity import Identity, address
from accord.client.socket import LOSSES
from accord.core.kernel.authority import Role
from tests.core.dialects.wire import PAYLOADS, envelope
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

LONGEST_LINE = 2048
LOST = b"!"
MARK = b'"seq"'  # whatever says where it stands comes from the server
WHO = Identity("claude", "agent", "Claude", (Role.DRIVER,))


def said(name: str, id: str, **more: Any) -> bytes:
    """One envelope of the program's, or with `seq` of the server's."""
    return json.dumps(envelope(name, id=id, session="s", **more)).encode()


def seeds() -> Iterator[bytes]:
    """A whole conversation with two losses, and a line of each type there and back."""
    error = {"code": "RATE_LIMITED", "message": "Wait", "recoverable": True, "related_to": "p2"}
    talk = [
        said("session.join", "j"),
        said("session.join", "j", seq=1),
        said("participant.announce", "a", seq=2),
        said("prompt.submit", "p1"),
        said("prompt.submit", "p1", seq=3),
        said("prompt.submit", "p2"),
        said("error", "e", seq=0, payload=error),
        said("prompt.draft", "d"),
        LOST,
        said("participant.announce", "a", seq=2),
        said("prompt.submit", "p1", seq=3),
        said("response.start", "r", seq=4, sender="codex"),
        said("prompt.submit", "p3"),
        LOST,
        said("response.end", "n", seq=5, sender="codex").replace(b": ", b":\t"),
        said("session.leave", "l"),
        said("session.leave", "l", seq=6),
        b"x" * (LONGEST_LINE + 1),
        b"",
    ]
    yield b"\n".join(talk)
    # A server that is none.
    odd = [
        said("error", "e", seq=0, payload={"code": {}, "related_to": []}),
        said("session.leave", "l", seq=9, payload={"participant": {}}),
        said("prompt.submit", "p", seq=9).replace(b"Please", b"\xff"),
    ]
    yield b"\n".join((*talk[:3], *odd))
    for name in sorted(PAYLOADS):
        yield b"\n".join((said(name, "m"), said(name, "m", seq=1), LOST, said(name, "m", seq=1)))


class Ends:
    """Both ends of a relay: what the input says happens, in its order."""

    def __init__(self, data: bytes) -> None:
        self.script = data.split(b"\n")[::-1]
        self.relay = Relay(address("http://127.0.0.1:1"), WHO, "fuzz", Retry())
        self.relay.put = self.put
        self.splitter = Splitter(LONGEST_LINE, 64)
        self.told: list[bytes] = []
        self.sent: list[str] = []
        self.reached: dict[str, int] = {}
        self.doubtful: str | None = None

    async def run(self) -> None:
        """To the end of the script, over as many connections as it takes."""
        while self.script:
            self.sent.clear()
            try:
                await self.relay._converse(self)  # type: ignore[arg-type]
            except LOSSES as error:
                self.lose(str(error))

    def lose(self, why: str) -> None:
        """Whoever waits for an answer is told so, once."""
        waiting = set(self.relay.pending)
        before = len(self.told)
        self.relay._lost(why)
        refs = Counter(json.loads(each)["payload"].get("related_to") for each in self.told[before:])
        assert not self.relay.pending
        assert all(refs[id] == 1 for id in waiting), "somebody waits for ever"

    # As the server's end of a connection

    async def send(self, text: str) -> None:
        """What goes out is a message, on one line."""
        assert head(text.encode()) is not None
        assert "\n" not in text
        self.sent.append(text)

    async def recv(self, *, decode: bool) -> bytes:
        """The next message; meanwhile the program says what it says."""
        assert not decode
        while self.script:
            line = self.script.pop()
            if line == LOST:
                break
            if MARK in line:
                line = line.replace(b"\t", b"\n")  # in here a line break ends a message
                self.expect(line)
                return line
            for piece in (line[: len(line) // 2], line[len(line) // 2 :] + b"\n"):
                for each in self.splitter.feed(piece):
                    await self.say(each)
        raise ConnectionResetError("lost")

    async def say(self, line: Line) -> None:
        """A line is sent as it is, or answered with why not; never both, never neither."""
        sent, told = len(self.sent), len(self.told)
        await self.relay.take(line)
        blank = not line.data.strip()
        assert (len(self.sent) - sent) + (len(self.told) - told) == (0 if blank else 1)
        if len(self.sent) > sent:
            assert self.sent[-1] == line.data.strip().decode()

    def expect(self, data: bytes) -> None:
        """In a session each place is heard once, in order, but for the answer to who asks again."""
        said = head(data) if is_text(data) else None
        if said is None or said.type == "error":
            return
        for gone in self.reached.keys() - self.relay.places.keys():
            del self.reached[gone]
        self.doubtful = None
        known, asked = said.session in self.relay.places, said.id in self.relay.pending
        if known and said.seq:
            old = said.seq <= self.reached.get(said.session, 0)
            self.doubtful = said.id if old and not asked else None
            self.reached[said.session] = max(said.seq, self.reached.get(said.session, 0))

    def put(self, data: bytes) -> None:
        """What the program hears: one message a line, none twice."""
        heard = json.loads(data)
        assert heard["type"] == "error" or heard["id"] != self.doubtful, "heard twice"
        assert b"\n" not in data
        reached(heard["type"])
        self.told.append(data)


def trial(place: Path) -> Trial:
    """A relay of its own for each."""
    return lambda data: asyncio.run(Ends(data).run())


def plant(patch: pytest.MonkeyPatch) -> None:
    """What was heard before is told again."""
    patch.setattr(Place, "is_new", lambda *_: True)
