"""Random posts, retries, reads, crashes and role changes: no message is lost, repeated or moved.

Readers ask for what comes after their last number; a watcher gets messages on a connection that it
loses again and again. Another workspace posts meanwhile, and its words reach nobody here.

`ACCORD_LONG=1` tries many more of them.
"""

import asyncio
import json
import os
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.kernel.timestamps import to_iso
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.joining import SessionJoin
from accord.engine.streams.stream import Submission
from accord.identity.token_signing import Keyring
from accord.transports.http.messages.message_pages import MessageReader
from accord.transports.msg.watching import ThreadWatcher
from tests.helpers.engine.harness import RecordingPeer
from tests.helpers.threads.local_service import LocalService
from tests.helpers.threads.thread_rules import agent
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
pytestmark = proves("MSG-2.2-2", "MSG-7-1", "OPEN-132", "UNI-9")
NAMES = ("worker", "other", "reviewer")
WATCHER = "reviewer"
FOREIGN = "a word of another workspace"
MAX_TURNS = 100_000
STATUSES = ("active", "blocked", "resolved", "closed")

names = st.sampled_from(NAMES)
roles = st.sampled_from([ThreadRole.WORKER, ThreadRole.REVIEWER, ThreadRole.ORCHESTRATOR])
keys = st.sampled_from(["k1", "k2", "k3"])


class Posted(NamedTuple):
    """What a keyed post was answered with, for its retries."""

    body: str
    message_id: str
    seq: int


class Watcher:
    """A member on a connection; it names the last message that it got when it comes back."""

    def __init__(self) -> None:
        self.peer: RecordingPeer | None = None
        self.read = 0  # how many of this connection's messages were looked at
        self.got: list[str] = []

    def collect(self) -> None:
        """Take in what arrived, which must continue what it has."""
        said = [] if self.peer is None else self.peer.received
        for message in said[self.read :]:
            if message["type"] == "context.add":
                assert message["seq"] == len(self.got) + 1
                assert FOREIGN not in json.dumps(message)
                self.got.append(message["id"])
        self.read = len(said)

    async def connect(self, local: LocalService, thread: str, number: int) -> None:
        """A new connection, which is sent what was missed and then what follows."""
        self.collect()
        who = agent(WATCHER)
        self.peer, self.read = RecordingPeer(local.engine, who, f"run-{number}"), 0
        announce = ParticipantAnnounce(WATCHER, WATCHER, "agent", (), "websocket")
        joins = SessionJoin(announce, (1,))
        last = self.got[-1] if self.got else None
        message = Message(f"join-{number}", to_iso(local.clock.now()), thread, WATCHER, joins, last)
        reader = MessageReader(local.service.sessions.sessions)
        ThreadWatcher(local.service, reader).take(Submission(message, who, peer=self.peer))
        while not self.peer.received:  # noqa: ASYNC110 - other tasks have their turn
            await asyncio.sleep(0)

    def lose(self) -> None:
        """The connection is gone, with what it brought read before."""
        self.collect()
        if self.peer is not None:
            self.peer.is_connected = False
        self.peer = None


class Reader:
    """An agent that reads with its own cursor and remembers what it got."""

    def __init__(self) -> None:
        self.next_seq = 0
        self.got: list[str] = []


class ThreadMachine(RuleBasedStateMachine):
    """A thread of three agents on a log that outlives its servers."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.local = self.run(self._started())
        self.thread = self.run(
            self.local.call(agent("worker"), "create_thread", title="T", participants=list(NAMES))
        ).thread_id
        self.said: list[str] = []  # ids in the order of their `seq`
        self.keyed: dict[tuple[str, str], Posted] = {}
        self.readers = {name: Reader() for name in NAMES}
        self.acked = dict.fromkeys(NAMES, 0)
        self.authors: list[str] = []
        self.count = 0
        self.connections = 0
        self.roles = dict.fromkeys(NAMES, ThreadRole.WORKER)
        self.watcher = Watcher()
        self.note("worker", self.run(self.local.post(agent("worker"), self.thread, self.body())))
        self.reconnect()

    def actor(self, name: str) -> Actor:
        """The agent with the role that its token has now."""
        return agent(name, self.roles[name])

    async def _started(self) -> LocalService:
        return LocalService(Keyring.open(Path(self.folder.name) / "keys"))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def note(self, author: str, answer: Any) -> None:
        """An answer that was not given before is the next message."""
        self.said.append(answer.message_id)
        self.authors.append(author)
        assert answer.seq == len(self.said)

    def body(self) -> str:
        self.count += 1
        return f"message {self.count}"

    @rule(name=names, role=roles)
    def change_role(self, name: str, role: ThreadRole) -> None:
        """The next token of the agent has another role."""
        self.roles[name] = role

    @rule()
    def reconnect(self) -> None:
        """The watcher loses its connection and comes back."""
        if self.watcher.peer is not None:
            self.watcher.peer.disconnect()
        self.connections += 1
        self.run(self.watcher.connect(self.local, self.thread, self.connections))

    @rule()
    def lose_the_connection(self) -> None:
        if self.watcher.peer is not None:
            self.watcher.peer.disconnect()
        self.watcher.lose()

    @rule(name=names)
    def post_from_another_workspace(self, name: str) -> None:
        """To a thread of its own, and in vain to this one, under the same names."""
        stranger = agent(name, ThreadRole.ORCHESTRATOR, "elsewhere")
        wanted = {"title": FOREIGN, "participants": list(NAMES), "idempotency_key": "k1"}
        theirs = self.run(self.local.call(stranger, "create_thread", **wanted)).thread_id
        self.run(self.local.post(stranger, theirs, FOREIGN, idempotency_key="k1"))
        with pytest.raises(Refused) as refused:
            self.run(self.local.post(stranger, self.thread, FOREIGN, idempotency_key="k1"))
        assert refused.value.reason is Reason.NO_ROOM

    @rule(name=names)
    def post(self, name: str) -> None:
        try:
            answer = self.run(self.local.post(self.actor(name), self.thread, self.body()))
        except Refused:
            return  # the thread is closed
        self.note(name, answer)

    @rule(name=names, key=keys)
    def post_with_a_key(self, name: str, key: str) -> None:
        before = self.keyed.get((name, key))
        text = before.body if before else self.body()
        answer = self._post_keyed(name, key, text)
        if before is not None:
            assert answer is not None
            assert (answer.message_id, answer.seq) == (before.message_id, before.seq)
        elif answer is not None:
            self.note(name, answer)
            self.keyed[name, key] = Posted(text, answer.message_id, answer.seq)

    @rule(name=names, key=keys)
    def reuse_a_key(self, name: str, key: str) -> None:
        if (name, key) in self.keyed:
            assert self._post_keyed(name, key, self.body()) is None

    def _post_keyed(self, name: str, key: str, text: str) -> Any | None:
        try:
            actor = self.actor(name)
            return self.run(self.local.post(actor, self.thread, text, idempotency_key=key))
        except Refused:
            return None

    @rule(name=names, key=keys, turns=st.integers(0, 30))
    def crash_while_posting(self, name: str, key: str, turns: int) -> None:
        """The answer is lost; a retry gets the message that was stored, or stores it now."""
        if (name, key) in self.keyed:
            return
        text = self.body()
        self.run(self._crash(name, key, text, turns))
        answer = self._post_keyed(name, key, text)
        if answer is not None:
            self.note(name, answer)
            self.keyed[name, key] = Posted(text, answer.message_id, answer.seq)

    async def _crash(self, name: str, key: str, text: str, turns: int) -> None:
        posting = asyncio.ensure_future(
            self.local.post(self.actor(name), self.thread, text, idempotency_key=key)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        self.local.engine.tasks.cancel_all()
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
        self.watcher.lose()
        self.local.start()

    @rule()
    def restart(self) -> None:
        self.run(self.local.stop())
        self.watcher.lose()
        self.local.start()

    @rule(name=names, status=st.sampled_from(STATUSES))
    def set_status(self, name: str, status: str) -> None:
        change = {"thread_id": self.thread, "status": status, "reason": "because"}
        try:
            self.run(self.local.call(self.actor(name), "update_thread_status", **change))
        except Refused:
            return
        self.said.append("")
        self.authors.append(name)

    @rule(name=names, limit=st.integers(1, 5))
    def read(self, name: str, limit: int) -> None:
        reader = self.readers[name]
        page = self.run(
            self.local.call(
                agent(name),
                "read_messages",
                thread_id=self.thread,
                since_seq=reader.next_seq,
                limit=limit,
            )
        )
        reader.got += [item.message_id for item in page.messages]
        assert all(FOREIGN not in item.body for item in page.messages)
        assert [item.seq for item in page.messages] == list(
            range(reader.next_seq + 1, page.next_seq + 1)
        )
        reader.next_seq = page.next_seq
        assert page.has_more == (page.next_seq < len(self.said))

    @rule(name=names, seq=st.integers(0, 40))
    def acknowledge(self, name: str, seq: int) -> None:
        allowed = self.acked[name] <= seq <= len(self.said)
        ack = {"thread_id": self.thread, "last_read_seq": seq}
        try:
            self.run(self.local.call(agent(name), "ack_read", **ack))
        except Refused:
            assert not allowed
        else:
            assert allowed
            self.acked[name] = seq

    @precondition(lambda self: self.said)
    @invariant()
    def unread_is_what_others_wrote_after_the_cursor(self) -> None:
        for name in NAMES:
            detail = self.run(self.local.call(agent(name), "get_thread", thread_id=self.thread))
            assert detail.last_seq == len(self.said)
            assert detail.last_read_seq == self.acked[name]
            assert detail.unread == sum(
                author != name for author in self.authors[self.acked[name] :]
            )

    def teardown(self) -> None:
        for name, reader in self.readers.items():
            while reader.next_seq < len(self.said):
                self.read(name, 5)
            expected = [id or got for id, got in zip(self.said, reader.got, strict=True)]
            assert reader.got == expected
            assert len(set(reader.got)) == len(reader.got)
        self.reconnect()
        self.run(self._watched())
        assert self.watcher.got == self.readers["worker"].got
        stranger = agent("worker", ThreadRole.ORCHESTRATOR, "elsewhere")
        try:
            self.run(self.local.call(stranger, "read_messages", thread_id=self.thread))
        except Refused:
            pass
        else:
            raise AssertionError("another workspace read the thread")
        self.run(self.local.stop())
        self.runner.close()
        self.folder.cleanup()

    async def _watched(self) -> None:
        """Wait until the watcher has been sent everything."""
        for _ in range(MAX_TURNS):
            self.watcher.collect()
            if len(self.watcher.got) == len(self.said):
                return
            await asyncio.sleep(0)
        raise AssertionError(f"{len(self.watcher.got)} of {len(self.said)} messages arrived")


TestThreads = ThreadMachine.TestCase
TestThreads.settings = settings(
    max_examples=400 if LONG else 15, stateful_step_count=60 if LONG else 25, deadline=None
)
