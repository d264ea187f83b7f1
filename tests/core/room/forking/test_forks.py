"""Forks: a part of the room goes its own way."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.limits import Limits
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room import DECIDE
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.forking.fork_state import Fork
from accord.core.room.forking.forks import ForkCreated, ForkSwitched, unique_slug
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import ServerPolicy
from tests.helpers.room.logged_room import (
    START_ID,
    LoggedRoom,
    context_add,
    context_remove,
    context_update,
    fork_create,
    fork_switch,
    member_ids,
    merge_propose,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    T0,
    expect_refusal,
    gate_approve,
    gate_on,
    has_grant,
    join_step,
    leave_step,
    prompt_submit,
    role_change,
    session_config_update,
    tool_propose,
    types_of,
)
from tests.spec import proves

R = Role
ALL = {"alice", "bob", "carol", "claude", "codex"}


def a_talk(**config: Any) -> LoggedRoom:
    """Alice is admin, Bob approves, Carol drives; two agents."""
    return LoggedRoom.with_members(
        (BOB, R.NAVIGATOR), (CAROL, R.DRIVER), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER), **config
    )


# Making one


@proves("PVP-16.1-1", "PVP-16.1-2", "PVP-4.3-13", "PVP-2-7", "OPEN-46", "OPEN-47")
def test_a_fork_has_a_name_a_point_where_it_begins_and_its_members() -> None:
    talk = a_talk()
    body = fork_create("Try Rust", CLAUDE, reason="It may be faster")

    facts = talk.send(BOB, body, id="f")

    members = frozenset({"bob", "claude"})
    assert facts == [ForkCreated(said=body, parent=None, members=members, fork="try-rust")]
    assert talk.room.forks["try-rust"] == Fork(
        id="try-rust",
        name="Try Rust",
        parent=None,
        from_point=START_ID,
        members=members,
        readers=members,
        created_by="bob",
        created_at=T0,
        base=facts.records[0].version,
    )


@proves("OPEN-46")
def test_the_whole_room_is_told_of_a_fork_with_its_id() -> None:
    talk = a_talk()

    talk.send(BOB, fork_create("Aside", CLAUDE), id="f")

    assert talk.record("f").fork == "aside"
    assert talk.readers("f") == ALL


@proves("OPEN-46", "PVP-5.1-3")
@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("Try Rust", "try-rust"),
        ("  --Über: 2 Wege!  ", "ber-2-wege"),
        ("日本語", "fork"),
        ("x" * 200, "x" * 64),
        ("y" * 63 + " z", "y" * 63),
        ("Main", "main-2"),
        ("trunk", "trunk-2"),
        ("taken", "taken-3"),
    ],
)
def test_unique_slug_avoids_taken_and_reserved_ids(name: str, id: str) -> None:
    assert unique_slug(name, frozenset({"taken", "taken-2"})) == id


@proves("OPEN-46")
def test_a_name_may_be_used_twice() -> None:
    talk = a_talk()

    assert [talk.fork("Same", BOB) for _ in range(3)] == ["same", "same-2", "same-3"]


@proves("PVP-16.1-4", "PVP-6.2-3")
def test_where_forks_are_not_allowed_there_are_none() -> None:
    talk = a_talk(allow_forks=False)

    with expect_refusal(Reason.WRONG_STATE, "Forks are disabled in this session"):
        talk.decide(ALICE, fork_create("Aside"))

    talk.send(ALICE, session_config_update(allow_forks=True))
    assert talk.allows(ALICE, fork_create("Aside"))


def test_a_session_has_only_so_many_forks() -> None:
    talk = a_talk()
    for number in range(Limits().forks):
        talk.fork(f"f{number}")

    with expect_refusal(Reason.WRONG_STATE, f"at most {Limits().forks} forks"):
        talk.decide(ALICE, fork_create("One more"))


@proves("OPEN-47", "PVP-17-5")
def test_only_those_who_are_here_can_be_taken_along() -> None:
    talk = a_talk()
    talk.send(CODEX, SessionLeave())

    with expect_refusal(Reason.NO_MEMBER, "Participants that are not here: codex, zoe"):
        talk.decide(BOB, fork_create("Aside", CODEX, Actor("zoe", Kind.HUMAN)))


@proves("PVP-7.2-5")
def test_without_the_right_to_fork_nobody_does() -> None:
    talk = LoggedRoom.with_members((BOB, R.APPROVER), (CLAUDE, R.DRIVER))

    with expect_refusal(Reason.FORBIDDEN, "right to fork"):
        talk.decide(BOB, fork_create("Aside"))


def test_a_fork_begins_at_a_message_that_its_maker_can_see() -> None:
    talk = a_talk()
    secret = talk.fork("Secret", CLAUDE)
    talk.send(CLAUDE, tool_propose(), id="p", fork=secret)

    with expect_refusal(Reason.MALFORMED, "No such message"):
        talk.decide(BOB, fork_create("Aside", point="p"))


def test_a_fork_begins_in_its_own_past() -> None:
    """Its announcement would tell the room of a message elsewhere."""
    talk = a_talk()
    secret = talk.fork("Secret", CLAUDE)
    talk.send(CLAUDE, tool_propose(), id="p", fork=secret)
    other = talk.fork("Other", CLAUDE)

    for where in (None, other):
        with expect_refusal(
            Reason.MALFORMED, f"from_point p is not in the history of {where or 'main'}"
        ):
            talk.decide(ALICE, fork_create("Aside", point="p"), fork=where)
    assert talk.allows(ALICE, fork_create("Aside", point="p"), fork=secret)
    assert talk.allows(ALICE, fork_create("Aside"), fork=secret)


@proves("OPEN-47")
def test_where_tools_are_gated_somebody_must_come_along_who_can_approve() -> None:
    talk = a_talk()

    for who in ([], [CLAUDE], [CLAUDE, CODEX]):
        with expect_refusal(Reason.WRONG_STATE, "add a human who may approve"):
            talk.decide(CAROL, fork_create("Aside", *who))
    assert talk.allows(CAROL, fork_create("Aside", BOB))
    assert talk.allows(BOB, fork_create("Aside"))


@proves("OPEN-47")
def test_an_agent_that_may_approve_is_no_person_who_can() -> None:
    talk = LoggedRoom.with_members((CAROL, R.DRIVER), (CLAUDE, R.NAVIGATOR))

    with expect_refusal(Reason.WRONG_STATE, "add a human who may approve"):
        talk.decide(CAROL, fork_create("Aside", CLAUDE))


@proves("OPEN-47")
def test_fork_without_approver_is_allowed_if_nothing_is_gated() -> None:
    talk = a_talk(require_approval_for=())

    assert talk.allows(CAROL, fork_create("Aside", CLAUDE))


# Inside


@proves("PVP-16.1-3", "PVP-3.2-1", "PVP-4.2-11", "OPEN-47", "UNI-12")
def test_what_is_said_inside_is_for_its_members_and_they_hear_the_trunk() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE, by=BOB)

    talk.send(CLAUDE, tool_propose(), id="inside", fork=fork)
    talk.send(CLAUDE, tool_propose(), id="outside")

    assert talk.readers("inside") == {"bob", "claude"}
    assert talk.readers("outside") == ALL


@proves("PVP-16.1-3", "OPEN-47")
@pytest.mark.parametrize("who", [ALICE, CODEX])
def test_nobody_else_says_anything_in_it_an_admin_neither(who: Actor) -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CAROL, CLAUDE, by=BOB)

    with expect_refusal(Reason.NOT_FOUND, f"There is no fork {fork} that you are in"):
        talk.decide(who, prompt_submit(), fork=fork)
    with expect_refusal(Reason.NOT_FOUND, "There is no fork other that you are in"):
        talk.decide(CAROL, prompt_submit(), fork="other")


def test_what_concerns_the_whole_session_is_not_said_in_a_fork() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB)
    whole: list[Body] = [
        fork_switch("main"),
        merge_propose(fork),
        session_config_update(),
        SessionLeave(),
    ]

    for body in whole:
        with expect_refusal(Reason.MALFORMED, f"{body.type} applies to the whole session"):
            talk.decide(ALICE, body, fork=fork)
    step = join_step(Actor("zoe", Kind.HUMAN), R.DRIVER)
    with expect_refusal(Reason.MALFORMED, "session.join applies to the whole session"):
        talk.decide(step.actor, step.body, fork=fork)


def test_the_types_that_can_be_said_in_a_fork() -> None:
    scoped = {body.type.partition(".")[0] for body in DECIDE if body.forkable}

    assert scoped >= {"prompt", "thinking", "response", "tool", "gate", "context", "fork"}
    assert not scoped & {"session", "participant", "interrupt", "merge", "heartbeat", "presence"}


@proves("OPEN-44", "PVP-16.1-3")
def test_an_answer_stays_in_its_fork_even_if_its_chunks_do_not_say_so() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)
    talk.send(ALICE, prompt_submit(), id="q", fork=fork)
    talk.send(CLAUDE, ResponseStart("claude", "q"), id="answer", fork=fork)
    talk.send(CLAUDE, ResponseChunk("Yes"), id="chunk")
    talk.send(CLAUDE, ResponseEnd("complete"), id="end")

    assert [talk.readers(i) for i in ("answer", "chunk", "end")] == [{"alice", "claude"}] * 3


@pytest.mark.parametrize("said", [ResponseChunk("Yes"), ResponseEnd("complete")])
@pytest.mark.parametrize("ref", ["answer", None])
@pytest.mark.parametrize("begun", [None, "other"])
@proves("OPEN-44", "PVP-16.1-3")
def test_no_answer_goes_on_elsewhere(said: Body, ref: str | None, begun: str | None) -> None:
    talk = a_talk()
    aside = talk.fork("Aside", CLAUDE)
    where = begun and talk.fork("Other", CLAUDE)
    talk.send(ALICE, prompt_submit(), id="q", fork=where)
    talk.send(CLAUDE, ResponseStart("claude", "q"), id="answer", fork=where)

    with expect_refusal(Reason.WRONG_STATE):
        talk.decide(CLAUDE, said, ref=ref, fork=aside)

    assert talk.allows(CLAUDE, said, ref=ref, fork=where)


@proves("OPEN-47")
def test_whoever_left_is_in_the_fork_again_after_coming_back() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(BOB, leave_step(BOB).body)
    with expect_refusal(Reason.NO_MEMBER):
        talk.decide(BOB, tool_propose(), fork=fork)

    back = join_step(BOB, R.NAVIGATOR)
    talk.send(back.actor, back.body)

    assert talk.allows(BOB, context_add("key"), fork=fork)


# Nested


@proves("OPEN-47")
def test_a_fork_inside_a_fork_takes_from_it() -> None:
    talk = a_talk()
    outer = talk.fork("Outer", BOB, CLAUDE)
    talk.send(CLAUDE, tool_propose(), id="p", fork=outer)

    facts = talk.send(BOB, fork_create("Inner", CLAUDE, point="p"), fork=outer)

    inner = talk.room.forks["inner"]
    assert facts.records[0].fork == "inner"
    assert (inner.parent, inner.members) == (outer, member_ids("bob", "claude"))
    with expect_refusal(Reason.NO_MEMBER, "Participants that are not here: carol"):
        talk.decide(BOB, fork_create("Inner", CAROL), fork=outer)


# Context


@proves("OPEN-47", "PVP-16.1-1")
def test_context_is_taken_along_as_far_as_its_members_could_see_it() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("open"))
    talk.send(BOB, context_add("some", to=["carol", "codex"]))
    talk.send(CAROL, context_add("hers", to=["codex"]))
    talk.send(CODEX, context_add("theirs", to=["bob"]))

    fork = talk.fork("Aside", CAROL, CLAUDE, copy=True)

    seen = {key: item.visible_to for key, item in talk.context_items(fork).items()}
    assert seen == {"open": None, "some": {"carol"}, "hers": {"carol"}}
    assert set(talk.context()) == {"open", "some", "hers", "theirs"}


@proves("PVP-16.1-1", "OPEN-47")
def test_without_a_copy_a_fork_begins_with_an_empty_shelf() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("open"))

    assert talk.context(talk.fork("Aside", CAROL)) == {}


@proves("OPEN-47")
def test_what_changes_in_a_fork_changes_there_alone() -> None:
    talk = a_talk()
    for key in ("a", "b"):
        talk.send(BOB, context_add(key, "old"))
    fork = talk.fork("Aside", BOB, copy=True)

    talk.send(BOB, context_update("a", "new"), fork=fork)
    talk.send(BOB, context_remove("b"), fork=fork)
    talk.send(BOB, context_add("c"), fork=fork)

    assert talk.context() == {"a": "old", "b": "old"}
    assert talk.context(fork) == {"a": "new", "c": "text"}


@proves("OPEN-47")
def test_a_nested_fork_copies_from_the_fork_it_left() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("trunk"))
    outer = talk.fork("Outer", BOB, CLAUDE)
    talk.send(BOB, context_add("outer"), fork=outer)

    inner = talk.fork("Inner", BOB, copy=True, fork=outer)

    assert set(talk.context(inner)) == {"outer"}


def test_there_is_room_for_only_so_many_copies() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("large", "x" * 600))
    house = ServerPolicy(limits=Limits(context=1000))

    with expect_refusal(Reason.TOO_LARGE, "The copied context does not fit"):
        talk.decide(BOB, fork_create("Aside", copy=True), house=house)
    assert talk.allows(BOB, fork_create("Aside"), house=house)


# Going there and back


@proves("PVP-16.2-1", "OPEN-47")
def test_a_member_goes_to_a_fork_and_back() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)

    facts = talk.send(BOB, fork_switch(fork))
    assert facts == [ForkSwitched(said=fork_switch(fork), seat="bob", target=fork)]
    assert [talk.room.members[seat].fork for seat in ("bob", "claude")] == [fork, None]

    for trunk in ("main", "trunk", ""):
        talk.send(BOB, fork_switch(trunk))
        assert talk.room.members["bob"].fork is None


@proves("OPEN-47")
def test_only_an_admin_enters_where_they_do_not_belong() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE, by=BOB)
    talk.send(CLAUDE, tool_propose(), id="before", fork=fork)
    with expect_refusal(Reason.FORBIDDEN, f"You are not in the fork {fork}"):
        talk.decide(CAROL, fork_switch(fork))
    assert "alice" not in talk.readers("before")

    talk.send(ALICE, fork_switch(fork))

    assert "alice" in talk.readers("before")
    assert talk.allows(ALICE, gate_approve(ALICE, "before"), fork=fork)


def test_there_is_no_way_to_a_fork_that_does_not_exist() -> None:
    with expect_refusal(Reason.NOT_FOUND, "There is no fork other"):
        a_talk().decide(ALICE, fork_switch("other"))


@proves("OPEN-17", "OPEN-47")
def test_the_first_who_can_answer_a_gate_is_asked_when_they_enter() -> None:
    talk = a_talk(default_gate_quorum=Everyone())
    fork = talk.fork("Aside", CLAUDE, by=BOB)
    talk.send(ALICE, role_change(ALICE, BOB, [R.NAVIGATOR], [R.DRIVER]))
    talk.send(CLAUDE, tool_propose(), id="p", fork=fork)
    assert not gate_on(talk.room, "p").ballot.roll

    talk.send(ALICE, fork_switch(fork))
    talk.send(ALICE, gate_approve(ALICE, "p"))

    assert has_grant(talk.room, "p")


@proves("OPEN-48")
def test_a_merged_fork_can_be_visited_but_nothing_is_said_in_it() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.merge(fork)

    assert types_of(talk.send(BOB, fork_switch(fork))) == [ForkSwitched]
    for body in (context_add("key"), fork_create("Inner")):
        with expect_refusal(Reason.WRONG_STATE, "was merged and is read-only"):
            talk.decide(BOB, body, fork=fork)
