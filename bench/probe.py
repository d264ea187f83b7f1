"""The limit: the least an honest server of the same path has to do, and nothing else.

Receive (picows), decode and validate (msgspec, 40 payload schemas chosen by `type`), authorise
(session, sender, role), check for a duplicate id, number, commit to SQLite in natural batches, and
only after the commit write one shared frame per session to every participant. The accepted bytes
are kept and sent as they came, with `seq` spliced in.

What it leaves out and a product has to do: joining and leaving, replay, presence, deadlines,
permissions that change, HTTP, a hash chain, limits.

    python -m bench.probe --db /tmp/probe.db     prints READY and its port
"""

import argparse
import asyncio
import gc
import sqlite3
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import uvloop
from msgspec import Meta
from picows import WSFrame, WSListener, WSMsgType, WSTransport, WSUpgradeRequest, ws_create_server

from bench.machine import pin
from bench.shapes import TYPES

TEXT, CLOSE = WSMsgType.TEXT, WSMsgType.CLOSE
CHECKPOINT_EVERY = 20_000  # events, about 16 MB of WAL
LARGEST_BACKLOG = 32 << 20
MOST_RECENT = 200_000
GC_THRESHOLD = (50_000, 20, 50)

Name = Annotated[str, Meta(max_length=200)]
Prose = Annotated[str, Meta(max_length=65_536)]
Ulid = Annotated[str, Meta(min_length=26, max_length=26)]
Count = Annotated[int, Meta(ge=0)]
Names = Annotated[list[Name], Meta(max_length=64)]
State = Literal["open", "active", "done", "plain"]


class Pos(msgspec.Struct):
    """A place in a text."""

    line: Count
    ch: Count


class Range(msgspec.Struct):
    """From one place to another."""

    start: Pos
    end: Pos


SHAPES: list[list[tuple[str, Any]]] = [
    [("title", Name), ("body", Prose), ("tags", Names), ("priority", Count), ("draft", bool)],
    [("path", Name), ("range", Range), ("text", Prose), ("version", Count)],
    [("target", Ulid), ("state", State), ("note", Name | None), ("score", float)],
    [("text", Prose), ("format", State), ("mentions", Names), ("thread", Name | None)],
    [
        ("sha", Name),
        ("branch", Name),
        ("message", Prose),
        ("files", Names),
        ("additions", Count),
        ("deletions", Count),
    ],
]


class Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a client sends; it may not send `seq`."""

    v: Literal[1]
    id: Ulid
    ts: Name
    session: Ulid
    sender: Name
    type: str
    payload: msgspec.Raw
    ref: Ulid | None = None
    causal_refs: Annotated[list[Ulid], Meta(max_length=64)] | None = None
    fork: Ulid | None = None


def payload_decoder(place: int, name: str) -> Any:
    """The strict decoder for one of the forty types."""
    shape = SHAPES[place % len(SHAPES)]
    kind = msgspec.defstruct(name.replace(".", "_"), shape, forbid_unknown_fields=True)
    return msgspec.json.Decoder(kind).decode


PAYLOADS = {name: payload_decoder(place, name) for place, name in enumerate(TYPES)}
ROLES = {
    "editor": frozenset(TYPES),
    "viewer": frozenset(name for name in TYPES if name.endswith(".note")),
}
BRACE = ord("}")
decode = msgspec.json.Decoder(Envelope).decode

INSERT = "INSERT INTO events(session, seq, id, body) VALUES(?, ?, ?, ?)"
SCHEMA = """
    CREATE TABLE IF NOT EXISTS events(
        gseq INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        id TEXT NOT NULL, body BLOB NOT NULL);
    CREATE UNIQUE INDEX IF NOT EXISTS ev_s ON events(session, seq);
    CREATE UNIQUE INDEX IF NOT EXISTS ev_id ON events(id);
"""

_medium = struct.Struct("!BBH").pack


def text_frame(payload: bytes) -> bytes:
    """A server's text frame."""
    size = len(payload)
    if size < 126:
        return bytes((0x81, size)) + payload
    if size < 65536:
        return _medium(0x81, 126, size) + payload
    return struct.pack("!BBQ", 0x81, 127, size) + payload


class Session:
    """Who is here, and what is decided but not told yet."""

    __slots__ = ("key", "members", "pending", "recent", "roles", "seq")

    def __init__(self, key: int) -> None:
        self.key = key
        self.seq = 0
        self.members: dict[str, Any] = {}
        self.roles: dict[str, str] = {}
        self.pending: list[bytes] = []
        self.recent: set[str] = set()


class Disk:
    """SQLite in WAL mode, written inline; checkpoints and their fsync have a thread."""

    def __init__(self, path: str, sync: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for setting in (
            "journal_mode=WAL",
            f"synchronous={sync}",
            "wal_autocheckpoint=0",
            "cache_size=-65536",
            "temp_store=MEMORY",
        ):
            self.db.execute(f"PRAGMA {setting}")
        self.db.executescript(SCHEMA)
        self.thread = ThreadPoolExecutor(1)
        self.second = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.second.execute("PRAGMA synchronous=NORMAL")
        self.since = 0
        self.checkpointing = False

    def commit(self, rows: list[tuple[int, int, str, bytes]]) -> None:
        """All rows, durable when this returns."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(INSERT, rows)
        self.db.execute("COMMIT")
        self.since += len(rows)
        if self.since > CHECKPOINT_EVERY and not self.checkpointing:
            self.checkpointing = True
            self.thread.submit(self._checkpoint)

    def _checkpoint(self) -> None:
        try:
            self.second.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            self.loop.call_soon_threadsafe(self._start_over)

    def _start_over(self) -> None:
        """Only the small rest, so that the WAL begins at its start again."""
        self.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        self.checkpointing = False
        self.since = 0


class Hub:
    """One inbound event after the other, then a commit, then everybody hears."""

    def __init__(self, disk: Disk | None, window: float) -> None:
        self.disk = disk
        self.window = window
        self.loop = asyncio.get_running_loop()
        self.sessions: dict[str, Session] = {}
        self.rows: list[tuple[int, int, str, bytes]] = []
        self.dirty: list[Session] = []
        self.armed = False

    def session(self, name: str) -> Session:
        """The session of that name, made when it is new."""
        found = self.sessions.get(name)
        if found is None:
            found = self.sessions[name] = Session(int(name[3:]))
        return found

    def receive(self, conn: "Connection", data: bytes) -> None:
        """Decode, validate, authorise, refuse a duplicate, number."""
        try:
            event = decode(data)
            PAYLOADS[event.type](event.payload)
        except (msgspec.DecodeError, KeyError) as error:
            conn.reject("invalid", str(error))
            return
        if data[-1] != BRACE:  # splicing below needs it last
            conn.reject("invalid", "trailing bytes")
            return
        session = conn.session
        if (
            event.session != conn.name
            or event.sender != conn.sender
            or event.type not in ROLES[session.roles[event.sender]]
        ):
            conn.reject("forbidden", event.id)
            return
        id = event.id
        if id in session.recent:
            conn.reject("duplicate", id)
            return
        session.recent.add(id)
        session.seq = seq = session.seq + 1
        out = b'%b,"seq":%d}' % (data[:-1], seq)
        if not session.pending:
            self.dirty.append(session)
        session.pending.append(text_frame(out))
        self.rows.append((session.key, seq, id, out))
        if not self.armed:
            self.armed = True
            if self.window:
                self.loop.call_later(self.window, self.flush)
            else:
                self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Make durable, then tell."""
        self.armed = False
        rows, self.rows = self.rows, []
        out = [(session, session.pending) for session in self.dirty]
        self.dirty = []
        for session, _ in out:
            session.pending = []
        if not rows:
            return
        if self.disk is not None:
            self.disk.commit(rows)
        for session, frames in out:
            data = frames[0] if len(frames) == 1 else b"".join(frames)
            for member in session.members.values():
                if member.get_write_buffer_size() > LARGEST_BACKLOG:
                    member.abort()
                else:
                    member.write(data)
            if len(session.recent) > MOST_RECENT:
                session.recent.clear()  # the unique index stays the authority


class Connection(WSListener):
    """`/<session>/<participant>` stands for a token that was checked."""

    def __init__(self, hub: Hub, request: WSUpgradeRequest) -> None:
        self.hub = hub
        _, self.name, self.sender = request.path.decode().split("/")

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.raw = transport.underlying_transport
        self.session = self.hub.session(self.name)
        self.session.members[self.sender] = self.raw
        self.session.roles[self.sender] = "editor"

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002 - picows' shape
        self.session.members.pop(self.sender, None)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type is TEXT and frame.fin:
            self.hub.receive(self, frame.get_payload_as_bytes())
        elif frame.msg_type is CLOSE:
            transport.disconnect()

    def reject(self, code: str, detail: str) -> None:
        """Tell its sender alone."""
        self.raw.write(text_frame(msgspec.json.encode({"error": code, "detail": detail[:200]})))


async def serve(args: argparse.Namespace) -> None:
    """Until a signal."""
    disk = None if args.db == "none" else Disk(args.db, args.sync)
    hub = Hub(disk, args.window / 1000)
    server = await ws_create_server(
        lambda request: Connection(hub, request),
        "127.0.0.1",
        args.port,
        use_aiofastnet=False,
        max_frame_size=1 << 20,
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    print("READY", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def stored(path: Path) -> tuple[int, bool]:
    """How many events a finished probe kept, and whether every session is without a gap."""
    db = sqlite3.connect(path)
    (rows,) = db.execute("SELECT count(*) FROM events").fetchone()
    per_session = "SELECT count(*) n, max(seq) m FROM events GROUP BY session"
    (bad,) = db.execute(f"SELECT count(*) FROM ({per_session}) WHERE n <> m").fetchone()  # noqa: S608
    db.close()
    return rows, bad == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--db", required=True, help="a file, or `none` to keep nothing")
    parser.add_argument("--sync", choices=["FULL", "NORMAL"], default="FULL")
    parser.add_argument("--window", type=float, default=0, help="ms to gather before a commit")
    parser.add_argument("--core", type=int, help="stay on this core")
    args = parser.parse_args()
    pin(args.core)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(args))


if __name__ == "__main__":
    main()
