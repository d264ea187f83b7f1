"""Thinking: what an agent lets some or all see of its reasoning."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.responses import (
    ResponseChunk,
    ResponseEnd,
    ResponseEnded,
    ResponseStart,
)
from accord.core.room.conversation.thinking import (
    ThinkingChunk,
    ThinkingChunked,
    ThinkingEnd,
    ThinkingEnded,
    ThinkingStart,
    ThinkingStarted,
)
from accord.core.room.field_types import Visibility
from accord.core.room.room_settings import ServerPolicy
from tests.helpers.room.logged_room import START_ID, LoggedRoom, member_ids
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    expect_refusal,
    leave_step,
    role_change,
    session_end,
    tool_propose,
    types_of,
)
from tests.spec import proves

R = Role
ALL = {"alice", "bob", "carol", "claude", "codex"}
CHUNK, END = ThinkingChunk("Hmm"), ThinkingEnd("It depends", 1200)


def a_talk() -> LoggedRoom:
    """Alice is admin, Bob approves, Carol drives; two agents, one of which may approve."""
    return LoggedRoom.with_members(
        (BOB, R.APPROVER), (CAROL, R.DRIVER), (CLAUDE, R.DRIVER), (CODEX, R.NAVIGATOR)
    )


def thinks(visible_to: Visibility = "all", agent: Actor = CLAUDE) -> ThinkingStart:
    return ThinkingStart(agent.principal, START_ID, visible_to)


def thinking(*ids: str, visible_to: Visibility = "all") -> LoggedRoom:
    """Claude thinks, under these ids."""
    talk = a_talk()
    for id in ids or ("t",):
        talk.send(CLAUDE, thinks(visible_to), id=id)
    return talk


# Who sees it


@proves("PVP-12.1-1", "PVP-12.1-2", "PVP-12.1-3", "PVP-12.1-4", "OPEN-44", "UNI-12")
@pytest.mark.parametrize(
    ("visible_to", "seen_by"),
    [
        ("all", ALL),
        ("approvers_only", {"alice", "bob", "codex", "claude"}),
        (("carol",), {"carol", "claude"}),
        (("carol", "nobody"), {"carol", "claude"}),
        ((), {"claude"}),
    ],
)
def test_thinking_is_for_those_whom_it_names(visible_to: Visibility, seen_by: set[str]) -> None:
    talk = a_talk()
    facts = [
        talk.send(CLAUDE, thinks(visible_to), id="t"),
        talk.send(CLAUDE, CHUNK, ref="t"),
        talk.send(CLAUDE, END, ref="t"),
    ]

    assert [types_of(each) for each in facts] == [
        [ThinkingStarted],
        [ThinkingChunked],
        [ThinkingEnded],
    ]
    assert [talk.audience(each.records[0]) for each in facts] == [seen_by] * 3
    assert [each.records[0].ref for each in facts] == [None, "t", "t"]
    assert not talk.room.streams
    assert talk.room.past["t"] == "ended"


@proves("OPEN-44")
def test_approvers_are_those_who_may_approve_when_it_is_sent() -> None:
    talk = thinking(visible_to="approvers_only")
    first = talk.send(CLAUDE, CHUNK)
    talk.send(ALICE, role_change(ALICE, BOB, [R.APPROVER], [R.DRIVER]))
    talk.send(ALICE, role_change(ALICE, CAROL, [R.DRIVER], [R.NAVIGATOR]))

    second = talk.send(CLAUDE, CHUNK)

    assert talk.audience(first.records[0]) == {"alice", "bob", "claude", "codex"}
    assert talk.audience(second.records[0]) == {"alice", "carol", "claude", "codex"}


@proves("PVP-12.1-3", "PVP-16.1-3", "UNI-12")
@pytest.mark.parametrize(
    ("visible_to", "seen_by"),
    [
        ("all", {"alice", "carol", "claude"}),
        ("approvers_only", {"alice", "claude"}),
        (("carol", "bob"), {"carol", "claude"}),
    ],
)
def test_in_a_fork_nobody_outside_sees_it(visible_to: Visibility, seen_by: set[str]) -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CAROL, CLAUDE)
    talk.send(CLAUDE, thinks(visible_to), id="t", fork=fork)
    talk.send(CLAUDE, CHUNK, ref="t", id="chunk")
    talk.send(CLAUDE, END, ref="t", id="end")

    assert [talk.readers(each) for each in ("t", "chunk", "end")] == [seen_by] * 3


@proves("OPEN-48", "UNI-12")
def test_a_merge_does_not_show_thinking_to_those_it_was_not_for() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CAROL, CLAUDE)
    talk.send(CLAUDE, thinks(("carol",)), id="some", fork=fork)
    talk.send(CLAUDE, thinks(), id="all", fork=fork)

    talk.merge(fork)

    assert talk.readers("all") == ALL
    assert talk.readers("some") == {"carol", "claude"}


# Streams told apart


@proves("OPEN-44")
def test_parallel_streams_are_told_apart_by_ref() -> None:
    talk = thinking("one", "two")

    assert talk.decide(CLAUDE, CHUNK, ref="two").records[0].ref == "two"
    talk.send(CLAUDE, END, ref="one")
    assert talk.decide(CLAUDE, CHUNK).records[0].ref == "two"


@proves("OPEN-44")
@pytest.mark.parametrize("body", [CHUNK, END])
def test_without_ref_and_with_several_nothing_is_guessed(body: Body) -> None:
    with expect_refusal(Reason.WRONG_STATE, "claude has 2 open thinking streams"):
        thinking("one", "two").decide(CLAUDE, body)
    with expect_refusal(Reason.WRONG_STATE, "claude has no open thinking streams"):
        a_talk().decide(CLAUDE, body)


@proves("OPEN-44")
def test_thinking_and_answers_are_not_mixed_up() -> None:
    talk = thinking()
    talk.send(CLAUDE, ResponseStart("claude", START_ID), id="answer")

    for body in (CHUNK, END):
        with expect_refusal(Reason.WRONG_STATE, "answer is not an open thinking stream of claude"):
            talk.decide(CLAUDE, body, ref="answer")
        assert talk.decide(CLAUDE, body).records[0].ref == "t"
    for other in (ResponseChunk("Well"), ResponseEnd("complete")):
        with expect_refusal(Reason.WRONG_STATE, "t is not an open response of claude"):
            talk.decide(CLAUDE, other, ref="t")
        assert talk.decide(CLAUDE, other).records[0].ref == "answer"


def test_nobody_thinks_for_another() -> None:
    talk = thinking()

    with expect_refusal(Reason.WRONG_STATE, "t is not an open thinking stream of codex"):
        talk.decide(CODEX, CHUNK, ref="t")
    with expect_refusal(Reason.CLAIM_MISMATCH):
        talk.decide(CODEX, thinks(agent=CLAUDE))
    with expect_refusal(Reason.FORBIDDEN, "act as an agent"):
        talk.decide(BOB, thinks(agent=BOB))


def test_thinking_is_about_a_prompt() -> None:
    talk = a_talk()
    talk.send(CLAUDE, tool_propose(), id="p")

    with expect_refusal(Reason.MALFORMED, "p is not a prompt.submit"):
        talk.decide(CLAUDE, ThinkingStart("claude", "p", "all"))


def test_there_is_an_end_to_the_streams_that_may_be_open() -> None:
    with expect_refusal(Reason.WRONG_STATE, "1 streams are open"):
        thinking().decide(CLAUDE, thinks(), house=ServerPolicy(limits=Limits(streams=1)))


def test_thinking_answers_no_prompt() -> None:
    talk = thinking()

    talk.send(CLAUDE, END)

    assert not talk.room.answered


# Interrupted


@proves("OPEN-44")
def test_an_agent_that_leaves_has_done_thinking() -> None:
    talk = thinking("one", "two", visible_to=("carol",))
    talk.send(CODEX, ThinkingStart("codex", START_ID, "all"), id="other")

    facts = talk.send(CLAUDE, leave_step(CLAUDE).body)

    closed = [record for record in facts.records if isinstance(record.event, ThinkingEnded)]
    assert [record.ref for record in closed] == ["one", "two"]
    assert [record.sender for record in closed] == ["system", "system"]
    assert all(record.to == member_ids("carol", "claude") for record in closed)
    assert set(talk.room.streams) == {"other"}


@proves("OPEN-27")
def test_the_end_of_the_session_closes_every_stream() -> None:
    talk = thinking()
    fork = talk.fork("Aside", CLAUDE)
    talk.send(CLAUDE, ResponseStart("claude", START_ID), id="answer", fork=fork)

    facts = talk.send(ALICE, session_end())

    closed = {record.ref: record for record in facts.records if record.ref}
    assert closed["t"].event == ThinkingEnded(said=ThinkingEnd(), ref="t")
    interrupted = ResponseEnd("interrupted")
    assert closed["answer"].event == ResponseEnded(said=interrupted, ref="answer", fork=fork)
    assert talk.audience(closed["answer"]) == {"alice", "claude"}


@proves("OPEN-48")
def test_a_merge_closes_the_streams_of_its_source() -> None:
    talk = thinking()
    fork = talk.fork("Aside", CAROL, CLAUDE)
    talk.send(CLAUDE, thinks(("carol",)), id="there", fork=fork)
    talk.send(CLAUDE, ResponseStart("claude", START_ID), id="answer", fork=fork)

    facts = talk.merge(fork)

    assert [ThinkingEnded, ResponseEnded] == types_of(facts)[:2]
    assert facts.records[0].to == member_ids("carol", "claude")
    assert [record.fork for record in facts.records[:2]] == [fork, fork]
    assert set(talk.room.streams) == {"t"}
