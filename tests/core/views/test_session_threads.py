"""Sessions as threads, and threads as sessions."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import AnyOf, Ballot
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.forking.fork_state import Fork
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.state import Gate, Member, Room
from accord.core.room.threads.message_tags import tags_of
from accord.core.room.threads.state import MessageKind, ThreadStatus, is_thread_id
from accord.core.views.session_threads import (
    SessionThread,
    as_message,
    is_background,
    is_readable,
    member_of,
    notice_item,
)
from accord.core.views.thread_sessions import CONFIG, watched_thread
from tests.helpers.threads.thread_rules import OPERATOR, OUTSIDER, WORKER, ThreadRules, agent
from tests.spec import proves

ALICE = Member("alice", "Alice", Kind.HUMAN, frozenset({Role.ADMIN}))
BOB = Member("bob", "Bob", Kind.AGENT, frozenset({Role.DRIVER}))
FORK = Fork(
    "f1",
    "try",
    None,
    "m1",
    members=frozenset({"alice"}),
    readers=frozenset({"alice"}),
    created_by="alice",
    created_at=0,
    base=1,
)
ROOM = Room(
    "s1",
    "Session",
    config=CONFIG,
    members={"alice": ALICE, "bob": BOB},
    former={"carol": replace(BOB, id="carol")},
    forks={"f1": FORK},
)


def record(said: Body | None, fork: str | None = None, sender: str = "bob") -> Record:
    return Record("room/s1", 5, 4, "m", 1, sender, "m", "", sender, Event(), said, fork=fork)


def item(key: str, *tags: str, content: Any = "hi") -> ContextAdd:
    return ContextAdd(key=key, content_type="text", content=content, tags=tags or None)


def test_a_notice_of_the_server_is_a_message_of_the_system_and_nobody_else_can_write_one() -> None:
    notice = notice_item("m9", "Waking bob: failed", {"notice": "wake_ended"})
    shown = as_message(record(notice, sender="system"), {})
    assert (shown.kind, shown.body) == (MessageKind.SYSTEM, "Waking bob: failed")
    assert shown.metadata == {"notice": "wake_ended"}
    forged = as_message(record(notice), {"of": "bob"})
    assert (forged.body, forged.metadata) == ("bob: context.add", {"record": {"of": "bob"}})


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, True), (SessionLeave(), True), (item("chat:m", "chat"), False)],
)
def test_what_asks_nothing_of_its_readers(said: Body | None, expected: bool) -> None:
    assert is_background(record(said)) is expected


@proves("UNI-6", "UNI-20")
def test_a_session_and_each_fork_is_a_thread_of_its_own() -> None:
    trunk, fork = SessionThread(ROOM), SessionThread(ROOM, "f1")
    assert (trunk.id, trunk.title, trunk.participants) == ("s1", "Session", ("alice", "bob"))
    assert (fork.id, fork.title, fork.participants) == ("f1", "try", ("alice",))
    assert is_readable(trunk, "bob")
    assert not is_readable(fork, "bob")
    assert trunk.may_read("bob", record(item("k")))
    assert not trunk.may_read("bob", record(item("k"), "f1"))
    assert fork.may_read("alice", record(item("k"), "f1"))
    assert not fork.may_read("bob", record(item("k"), "f1"))


@proves("UNI-6")
def test_the_status_of_a_session_as_a_thread() -> None:
    gate = Gate("g", "prompt", "m", "bob", Ballot(AnyOf(1)), "ok?", 60, 0, None, fork="f1")
    gated = replace(ROOM, gates={"g": gate})
    merged = replace(ROOM, forks={"f1": replace(FORK, merged=True)})
    active, blocked, closed = ThreadStatus.ACTIVE, ThreadStatus.BLOCKED, ThreadStatus.CLOSED
    assert SessionThread(ROOM).status is SessionThread(gated).status is active
    assert SessionThread(gated, "f1").status is blocked
    assert SessionThread(replace(ROOM, paused_at=1)).status is blocked
    assert SessionThread(replace(ROOM, ended="completed")).status is closed
    assert (SessionThread(merged).status, SessionThread(merged, "f1").status) == (active, closed)


@proves("UNI-8")
@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        (MessageKind.CHAT, {}),
        (MessageKind.CHAT, {"to": ["bob"], "n": 1}),
        (MessageKind.EVENT, {"event_type": "fix_pushed"}),
        (MessageKind.EVENT, {"event_type": "fix_pushed", "commit": "abc"}),
    ],
    ids=["chat", "chat-metadata", "event", "event-metadata"],
)
def test_a_posted_message_reads_back_as_it_was(kind: MessageKind, metadata: dict[str, Any]) -> None:
    said = item(f"{kind}:m", *tags_of(kind, metadata))
    assert as_message(record(said), {}) == (kind, "hi", metadata)


@pytest.mark.parametrize(
    "said",
    [
        SessionLeave(),
        item("notes"),
        item("chat:m"),
        item("chat:m", "other"),
        item("event:m", "chat"),
        item("chat:m", "chat", content={"a": 1}),
        None,
    ],
    ids=["leave", "item", "untagged", "other-tag", "event-without-type", "data", "internal"],
)
def test_everything_else_is_one_line_with_its_record(said: Body | None) -> None:
    message = as_message(record(said), {"id": "m"})
    assert message.kind is MessageKind.SYSTEM
    assert message.metadata == {"record": {"id": "m"}}
    assert "\n" not in message.body


def test_tags_that_are_not_ours_carry_no_metadata() -> None:
    said = item("chat:m", "chat", "metadata:{", "metadata:[1]", "x")
    assert as_message(record(said), {}).metadata == {}


def test_a_sender_is_a_member_a_former_member_or_the_server() -> None:
    assert member_of(ROOM, "alice") is ALICE
    assert member_of(ROOM, "carol") is ROOM.former["carol"]
    assert member_of(ROOM, "system") is None


@proves("UNI-6")
def test_a_thread_is_watched_as_a_session_of_observers() -> None:
    rules = ThreadRules()
    room = watched_thread(rules.state, OPERATOR)
    assert is_thread_id(room.id)
    assert (room.name, room.ended) == ("Review", "")
    assert set(room.members) == {"worker", "other", "reviewer", "olga"}
    assert all(member.roles == {Role.OBSERVER} for member in room.members.values())
    rules.set(OPERATOR, ThreadStatus.CLOSED, "done")
    assert watched_thread(rules.state, WORKER).ended == "closed"


@pytest.mark.parametrize("reader", [OUTSIDER, agent("worker", workspace="elsewhere")])
def test_a_thread_that_one_may_not_read_is_no_session(reader: Actor) -> None:
    with pytest.raises(Refused) as refused:
        watched_thread(ThreadRules().state, reader)
    assert refused.value.reason is Reason.NO_ROOM
