"""What the load says to each server: to the probe its own envelopes, to Accord legal PVP."""

import time
from typing import Any, Protocol

import orjson

from bench.shapes import LOREM, PAYLOADS, TYPES, session_id

TS = "2026-11-15T18:00:00.000Z"
CONFIG = {
    "require_approval_for": [],
    "default_gate_quorum": {"type": "any", "count": 1},
    "allow_forks": True,
    "max_participants": 1000,
    "ordering_mode": "causal",
    "on_participant_timeout": "wait",
    "heartbeat_interval_seconds": 600,
    "idle_timeout_seconds": 2400,
    "away_timeout_seconds": 4800,
}


class Adapter(Protocol):
    """`i` is a session's number, `j` a participant's, `n` counts events."""

    def url(self, base: str, i: int, j: int) -> str:
        """Where participant j of session i connects."""
        ...

    def hello(self, i: int, j: int) -> list[bytes]:
        """What it sends first."""
        ...

    def ready(self, i: int, j: int, payload: bytes) -> bool:
        """Whether this frame says that it may send events; asked until it does."""
        ...

    def event(self, i: int, j: int, n: int) -> bytes:
        """An event the server accepts."""
        ...

    def own(self, i: int, j: int) -> bytes:
        """Bytes that mark a delivered event as this participant's."""
        ...

    def sessions(self, count: int) -> list[str]:
        """Under which names the log has them."""
        ...


def is_event(payload: bytes) -> bool:
    """Whether a frame is numbered; errors are not."""
    return b'"seq":' in payload[-16:]


class ForProbe:
    """Forty types, one after the other."""

    def url(self, base: str, i: int, j: int) -> str:
        return f"{base}/{session_id(i)}/p{j}"

    def hello(self, i: int, j: int) -> list[bytes]:  # noqa: ARG002 - an adapter's shape
        return []

    def ready(self, i: int, j: int, payload: bytes) -> bool:  # noqa: ARG002
        return True

    def event(self, i: int, j: int, n: int) -> bytes:
        session = session_id(i).encode()
        return (
            b'{"v":1,"id":"01E%023d","ts":"%b","session":"%b","sender":"p%d","type":"%b",'
            b'"payload":%b,"ref":"%b","causal_refs":["%b"]}'
        ) % (
            n,
            TS.encode(),
            session,
            j,
            TYPES[n % 40].encode(),
            PAYLOADS[n % 5],
            session,
            session,
        )

    def own(self, i: int, j: int) -> bytes:  # noqa: ARG002
        return b'"sender":"p%d"' % j

    def sessions(self, count: int) -> list[str]:
        return [session_id(i) for i in range(count)]


PROBE_SIZES = [len(ForProbe().event(0, 0, n)) for n in range(5)]


def envelope(type: str, id: str, session: str, sender: str, payload: Any, **more: Any) -> bytes:
    """One PVP envelope."""
    said = {"v": 1, "id": id, "ts": TS, "session": session, "sender": sender, "type": type}
    return orjson.dumps({**said, "payload": payload, **more})


def filler(size: int) -> str:
    """So many characters."""
    return (LOREM * (1 + size // len(LOREM)))[:size]


class ForAccord:
    """What both exchanges have in common: fresh sessions, created by their first participant."""

    kind = "agent"

    def __init__(self, run: str = "") -> None:
        self.run = run or f"{time.time_ns():x}"

    def url(self, base: str, i: int, j: int) -> str:  # noqa: ARG002 - an adapter's shape
        return base

    def session(self, i: int) -> str:
        return f"ses_{self.run}_{i}"

    def sessions(self, count: int) -> list[str]:
        return [self.session(i) for i in range(count)]

    def id(self, what: str, i: int, j: int) -> str:
        return f"{what}-{self.run}-{i}-{j}"

    def seat(self, j: int) -> str:
        return f"p{j}"

    def own(self, i: int, j: int) -> bytes:  # noqa: ARG002
        return b'"sender":"%b"' % self.seat(j).encode()

    def kind_of(self, j: int) -> str:  # noqa: ARG002
        return self.kind

    def hello(self, i: int, j: int) -> list[bytes]:
        session, seat = self.session(i), self.seat(j)
        create = envelope(
            "session.create",
            self.id("create", i, j),
            session,
            seat,
            {"name": "bench", "config": CONFIG},
        )
        participant = {
            "id": seat,
            "name": seat,
            "type": self.kind_of(j),
            "roles": ["driver"],
            "capabilities": [],
            "transport": "websocket",
        }
        join = envelope(
            "session.join",
            self.id("join", i, j),
            session,
            seat,
            {"participant": participant, "supported_versions": [1]},
        )
        return [create, join] if j == 0 else [join]

    def ready(self, i: int, j: int, payload: bytes) -> bool:
        frame = orjson.loads(payload)
        if frame["type"] == "error":
            raise RuntimeError(f"{self.seat(j)} in session {i}: {payload!r}")
        return self.is_ready(i, j, frame)

    def is_ready(self, i: int, j: int, frame: dict[str, Any]) -> bool:
        """Joined: the announcement that answers the join is here."""
        answers = frame.get("ref") == self.id("join", i, j)
        return frame["type"] == "participant.announce" and answers


class Agents(ForAccord):
    """Every participant is an agent that writes a response, chunk by chunk."""

    def __init__(self, run: str = "") -> None:
        super().__init__(run)
        self.texts = self._texts()

    def hello(self, i: int, j: int) -> list[bytes]:
        session, seat = self.session(i), self.seat(j)
        asked, started = self.id("prompt", i, j), self.id("start", i, j)
        asks = {
            "content": "Count to many",
            "target_agent": seat,
            "contributors": [seat],
            "context_keys": [],
        }
        answers = {"agent": seat, "prompt_ref": asked}
        return [
            *super().hello(i, j),
            envelope("prompt.submit", asked, session, seat, asks),
            envelope("response.start", started, session, seat, answers, ref=asked),
        ]

    def is_ready(self, i: int, j: int, frame: dict[str, Any]) -> bool:
        """The stream is open."""
        return bool(frame["id"] == self.id("start", i, j))

    def event(self, i: int, j: int, n: int) -> bytes:
        return (
            b'{"v":1,"id":"01E%023d","ts":"%b","session":"%b","sender":"p%d",'
            b'"type":"response.chunk","payload":{"text":"%b"},"ref":"%b"}'
        ) % (
            n,
            TS.encode(),
            self.session(i).encode(),
            j,
            self.texts[n % 5],
            self.id("start", i, j).encode(),
        )

    def _texts(self) -> list[bytes]:
        """Texts that make each envelope as long as the probe's."""
        self.texts = [b""] * 5
        bare = len(self.event(0, 0, 0))
        return [filler(max(0, size - bare)).encode() for size in PROBE_SIZES]


class Drivers(ForAccord):
    """People prompt one agent; it joins last and only listens, so there is one more of them."""

    kind = "human"

    def __init__(self, run: str = "", senders: int = 10) -> None:
        super().__init__(run)
        self.senders = senders
        self.texts = self._texts()

    def kind_of(self, j: int) -> str:
        return "agent" if j == self.senders else "human"

    def event(self, i: int, j: int, n: int) -> bytes:
        return (
            b'{"v":1,"id":"01E%023d","ts":"%b","session":"%b","sender":"p%d",'
            b'"type":"prompt.submit","payload":{"content":"%b","target_agent":"p%d",'
            b'"contributors":["p%d"],"context_keys":[]}}'
        ) % (
            n,
            TS.encode(),
            self.session(i).encode(),
            j,
            self.texts[n % 5],
            self.senders,
            j,
        )

    def _texts(self) -> list[bytes]:
        self.texts = [b""] * 5
        bare = len(self.event(0, 0, 0))
        return [filler(max(0, size - bare)).encode() for size in PROBE_SIZES]


ADAPTERS = {"probe": ForProbe, "agents": Agents, "drivers": Drivers}


def adapter_of(name: str, run: str, senders: int) -> Adapter:
    """The adapter of that name for one run."""
    if name == "probe":
        return ForProbe()
    return Agents(run) if name == "agents" else Drivers(run, senders)
