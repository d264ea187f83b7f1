"""Thinking: what an agent lets some or all see of its reasoning."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room.fields import Visibility
from accord.core.room.state import House
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseEnded, ResponseStart
from accord.core.room.thinking import (
    ThinkingChunk,
    ThinkingChunked,
    ThinkingEnd,
    ThinkingEnded,
    ThinkingStart,
    ThinkingStarted,
)
from tests.helpers.forks import START, Talk, seats
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    changes_roles,
    ends,
    kinds,
    left,
    proposes,
    refused,
)
from tests.spec import proves

R = Role
ALL = {"alice", "bob", "carol", "claude", "codex"}
CHUNK, END = ThinkingChunk("Hmm"), ThinkingEnd("It depends", 1200)


def a_talk() -> Talk:
    """Alice is admin, Bob approves, Carol drives; two agents, one of which may approve."""
    return Talk.of((BOB, R.APPROVER), (CAROL, R.DRIVER), (CLAUDE, R.DRIVER), (CODEX, R.NAVIGATOR))


def thinks(visible_to: Visibility = "all", agent: Actor = CLAUDE) -> ThinkingStart:
    return ThinkingStart(agent.seat, START, visible_to)


def thinking(*ids: str, visible_to: Visibility = "all") -> Talk:
    """Claude thinks, under these ids."""
    talk = a_talk()
    for id in ids or ("t",):
        talk.says(CLAUDE, thinks(visible_to), id=id)
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
        talk.says(CLAUDE, thinks(visible_to), id="t"),
        talk.says(CLAUDE, CHUNK, ref="t"),
        talk.says(CLAUDE, END, ref="t"),
    ]

    assert [kinds(each) for each in facts] == [
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
    first = talk.says(CLAUDE, CHUNK)
    talk.says(ALICE, changes_roles(ALICE, BOB, [R.APPROVER], [R.DRIVER]))
    talk.says(ALICE, changes_roles(ALICE, CAROL, [R.DRIVER], [R.NAVIGATOR]))

    second = talk.says(CLAUDE, CHUNK)

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
    talk.says(CLAUDE, thinks(visible_to), id="t", fork=fork)
    talk.says(CLAUDE, CHUNK, ref="t", id="chunk")
    talk.says(CLAUDE, END, ref="t", id="end")

    assert [talk.readers(each) for each in ("t", "chunk", "end")] == [seen_by] * 3


@proves("OPEN-48", "UNI-12")
def test_a_merge_does_not_show_thinking_to_those_it_was_not_for() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CAROL, CLAUDE)
    talk.says(CLAUDE, thinks(("carol",)), id="some", fork=fork)
    talk.says(CLAUDE, thinks(), id="all", fork=fork)

    talk.merges(fork)

    assert talk.readers("all") == ALL
    assert talk.readers("some") == {"carol", "claude"}


# Streams told apart


@proves("OPEN-44")
def test_parallel_streams_are_told_apart_by_ref() -> None:
    talk = thinking("one", "two")

    assert talk.tries(CLAUDE, CHUNK, ref="two").records[0].ref == "two"
    talk.says(CLAUDE, END, ref="one")
    assert talk.tries(CLAUDE, CHUNK).records[0].ref == "two"


@proves("OPEN-44")
@pytest.mark.parametrize("body", [CHUNK, END])
def test_without_ref_and_with_several_nothing_is_guessed(body: Body) -> None:
    with refused(Why.WRONG_STATE, "claude has 2 open thinking streams"):
        thinking("one", "two").tries(CLAUDE, body)
    with refused(Why.WRONG_STATE, "claude has no open thinking streams"):
        a_talk().tries(CLAUDE, body)


@proves("OPEN-44")
def test_thinking_and_answers_are_not_mixed_up() -> None:
    talk = thinking()
    talk.says(CLAUDE, ResponseStart("claude", START), id="answer")

    for body in (CHUNK, END):
        with refused(Why.WRONG_STATE, "answer is not an open thinking of claude"):
            talk.tries(CLAUDE, body, ref="answer")
        assert talk.tries(CLAUDE, body).records[0].ref == "t"
    for other in (ResponseChunk("Well"), ResponseEnd("complete")):
        with refused(Why.WRONG_STATE, "t is not an open response of claude"):
            talk.tries(CLAUDE, other, ref="t")
        assert talk.tries(CLAUDE, other).records[0].ref == "answer"


def test_nobody_thinks_for_another() -> None:
    talk = thinking()

    with refused(Why.WRONG_STATE, "t is not an open thinking of codex"):
        talk.tries(CODEX, CHUNK, ref="t")
    with refused(Why.CLAIM_MISMATCH):
        talk.tries(CODEX, thinks(agent=CLAUDE))
    with refused(Why.FORBIDDEN, "act as an agent"):
        talk.tries(BOB, thinks(agent=BOB))


def test_thinking_is_about_a_prompt() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="p")

    with refused(Why.MALFORMED, "p is not a prompt.submit"):
        talk.tries(CLAUDE, ThinkingStart("claude", "p", "all"))


def test_there_is_an_end_to_the_streams_that_may_be_open() -> None:
    with refused(Why.WRONG_STATE, "1 streams are open"):
        thinking().tries(CLAUDE, thinks(), house=House(limits=Limits(streams=1)))


def test_thinking_answers_no_prompt() -> None:
    talk = thinking()

    talk.says(CLAUDE, END)

    assert not talk.room.answered


# Interrupted


@proves("OPEN-44")
def test_an_agent_that_leaves_has_done_thinking() -> None:
    talk = thinking("one", "two", visible_to=("carol",))
    talk.says(CODEX, ThinkingStart("codex", START, "all"), id="other")

    facts = talk.says(CLAUDE, left(CLAUDE).body)

    closed = [record for record in facts.records if isinstance(record.event, ThinkingEnded)]
    assert [record.ref for record in closed] == ["one", "two"]
    assert [record.sender for record in closed] == ["system", "system"]
    assert all(record.to == seats("carol", "claude") for record in closed)
    assert set(talk.room.streams) == {"other"}


@proves("OPEN-27")
def test_the_end_of_the_session_closes_every_stream() -> None:
    talk = thinking()
    fork = talk.fork("Aside", CLAUDE)
    talk.says(CLAUDE, ResponseStart("claude", START), id="answer", fork=fork)

    facts = talk.says(ALICE, ends())

    closed = {record.ref: record for record in facts.records if record.ref}
    assert closed["t"].event == ThinkingEnded(said=ThinkingEnd(), ref="t")
    interrupted = ResponseEnd("interrupted")
    assert closed["answer"].event == ResponseEnded(said=interrupted, ref="answer", fork=fork)
    assert talk.audience(closed["answer"]) == {"alice", "claude"}


@proves("OPEN-48")
def test_a_merge_closes_the_streams_of_its_source() -> None:
    talk = thinking()
    fork = talk.fork("Aside", CAROL, CLAUDE)
    talk.says(CLAUDE, thinks(("carol",)), id="there", fork=fork)
    talk.says(CLAUDE, ResponseStart("claude", START), id="answer", fork=fork)

    facts = talk.merges(fork)

    assert [ThinkingEnded, ResponseEnded] == kinds(facts)[:2]
    assert facts.records[0].to == seats("carol", "claude")
    assert [record.fork for record in facts.records[:2]] == [fork, fork]
    assert set(talk.room.streams) == {"t"}
