"""Forks: a part of the room goes its own way."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room import DECIDE
from accord.core.room.forks import ForkCreated, ForkSwitched, slug
from accord.core.room.members import SessionLeave
from accord.core.room.state import Fork, House
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from tests.helpers.forks import START, Talk, adds, forks, merges, removes, seats, switches, updates
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    T0,
    approves,
    changes_roles,
    configures,
    gate_on,
    joined,
    kinds,
    left,
    may_run,
    prompts,
    proposes,
    refused,
)
from tests.spec import proves

R = Role
ALL = {"alice", "bob", "carol", "claude", "codex"}


def a_talk(**config: Any) -> Talk:
    """Alice is admin, Bob approves, Carol drives; two agents."""
    return Talk.of(
        (BOB, R.NAVIGATOR), (CAROL, R.DRIVER), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER), **config
    )


# Making one


@proves("PVP-16.1-1", "PVP-16.1-2", "PVP-4.3-13", "PVP-2-7", "OPEN-46", "OPEN-47")
def test_a_fork_has_a_name_a_point_where_it_begins_and_its_members() -> None:
    talk = a_talk()
    body = forks("Try Rust", CLAUDE, reason="It may be faster")

    facts = talk.says(BOB, body, id="f")

    members = frozenset({"bob", "claude"})
    assert facts == [ForkCreated(said=body, parent=None, members=members, fork="try-rust")]
    assert talk.room.forks["try-rust"] == Fork(
        id="try-rust",
        name="Try Rust",
        parent=None,
        from_point=START,
        members=members,
        readers=members,
        created_by="bob",
        created_at=T0,
        base=facts.records[0].version,
    )


@proves("OPEN-46")
def test_the_whole_room_is_told_of_a_fork_with_its_id() -> None:
    talk = a_talk()

    talk.says(BOB, forks("Aside", CLAUDE), id="f")

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
def test_a_readable_id_that_nobody_has_yet(name: str, id: str) -> None:
    assert slug(name, frozenset({"taken", "taken-2"})) == id


@proves("OPEN-46")
def test_a_name_may_be_used_twice() -> None:
    talk = a_talk()

    assert [talk.fork("Same", BOB) for _ in range(3)] == ["same", "same-2", "same-3"]


@proves("PVP-16.1-4", "PVP-6.2-3")
def test_where_forks_are_not_allowed_there_are_none() -> None:
    talk = a_talk(allow_forks=False)

    with refused(Why.WRONG_STATE, "This session allows no forks"):
        talk.tries(ALICE, forks("Aside"))

    talk.says(ALICE, configures(allow_forks=True))
    assert talk.allows(ALICE, forks("Aside"))


def test_a_session_has_only_so_many_forks() -> None:
    talk = a_talk()
    for number in range(Limits().forks):
        talk.fork(f"f{number}")

    with refused(Why.WRONG_STATE, f"at most {Limits().forks} forks"):
        talk.tries(ALICE, forks("One more"))


@proves("OPEN-47", "PVP-17-5")
def test_only_those_who_are_here_can_be_taken_along() -> None:
    talk = a_talk()
    talk.says(CODEX, SessionLeave())

    with refused(Why.NO_MEMBER, "Not here to take along: codex, zoe"):
        talk.tries(BOB, forks("Aside", CODEX, Actor("zoe", Kind.HUMAN)))


@proves("PVP-7.2-5")
def test_without_the_right_to_fork_nobody_does() -> None:
    talk = Talk.of((BOB, R.APPROVER), (CLAUDE, R.DRIVER))

    with refused(Why.FORBIDDEN, "right to fork"):
        talk.tries(BOB, forks("Aside"))


def test_a_fork_begins_at_a_message_that_its_maker_can_see() -> None:
    talk = a_talk()
    secret = talk.fork("Secret", CLAUDE)
    talk.says(CLAUDE, proposes(), id="p", fork=secret)

    with refused(Why.MALFORMED, "No such message"):
        talk.tries(BOB, forks("Aside", point="p"))


def test_a_fork_begins_in_its_own_past() -> None:
    """Its announcement would tell the room of a message elsewhere."""
    talk = a_talk()
    secret = talk.fork("Secret", CLAUDE)
    talk.says(CLAUDE, proposes(), id="p", fork=secret)
    other = talk.fork("Other", CLAUDE)

    for where in (None, other):
        with refused(Why.MALFORMED, f"from_point p is not in the past of {where or 'main'}"):
            talk.tries(ALICE, forks("Aside", point="p"), fork=where)
    assert talk.allows(ALICE, forks("Aside", point="p"), fork=secret)
    assert talk.allows(ALICE, forks("Aside"), fork=secret)


@proves("OPEN-47")
def test_where_tools_are_gated_somebody_must_come_along_who_can_approve() -> None:
    talk = a_talk()

    for who in ([], [CLAUDE], [CLAUDE, CODEX]):
        with refused(Why.WRONG_STATE, "Take along a person who may approve"):
            talk.tries(CAROL, forks("Aside", *who))
    assert talk.allows(CAROL, forks("Aside", BOB))
    assert talk.allows(BOB, forks("Aside"))


@proves("OPEN-47")
def test_an_agent_that_may_approve_is_no_person_who_can() -> None:
    talk = Talk.of((CAROL, R.DRIVER), (CLAUDE, R.NAVIGATOR))

    with refused(Why.WRONG_STATE, "Take along a person"):
        talk.tries(CAROL, forks("Aside", CLAUDE))


@proves("OPEN-47")
def test_where_nothing_is_gated_nobody_has_to() -> None:
    talk = a_talk(require_approval_for=())

    assert talk.allows(CAROL, forks("Aside", CLAUDE))


# Inside


@proves("PVP-16.1-3", "PVP-3.2-1", "PVP-4.2-11", "OPEN-47", "UNI-12")
def test_what_is_said_inside_is_for_its_members_and_they_hear_the_trunk() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE, by=BOB)

    talk.says(CLAUDE, proposes(), id="inside", fork=fork)
    talk.says(CLAUDE, proposes(), id="outside")

    assert talk.readers("inside") == {"bob", "claude"}
    assert talk.readers("outside") == ALL


@proves("PVP-16.1-3", "OPEN-47")
@pytest.mark.parametrize("who", [ALICE, CODEX])
def test_nobody_else_says_anything_in_it_an_admin_neither(who: Actor) -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CAROL, CLAUDE, by=BOB)

    with refused(Why.UNKNOWN, f"There is no fork {fork} for you here"):
        talk.tries(who, prompts(), fork=fork)
    with refused(Why.UNKNOWN, "There is no fork other for you here"):
        talk.tries(CAROL, prompts(), fork="other")


def test_what_concerns_the_whole_session_is_not_said_in_a_fork() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB)
    whole: list[Body] = [switches("main"), merges(fork), configures(), SessionLeave()]

    for body in whole:
        with refused(Why.MALFORMED, f"{body.type} is about the whole session"):
            talk.tries(ALICE, body, fork=fork)
    step = joined(Actor("zoe", Kind.HUMAN), R.DRIVER)
    with refused(Why.MALFORMED, "session.join is about the whole session"):
        talk.tries(step.actor, step.body, fork=fork)


def test_the_types_that_can_be_said_in_a_fork() -> None:
    scoped = {body.type.partition(".")[0] for body in DECIDE if body.scoped}

    assert scoped >= {"prompt", "thinking", "response", "tool", "gate", "context", "fork"}
    assert not scoped & {"session", "participant", "interrupt", "merge", "heartbeat", "presence"}


@proves("OPEN-44", "PVP-16.1-3")
def test_an_answer_stays_in_its_fork_even_if_its_chunks_do_not_say_so() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)
    talk.says(ALICE, prompts(), id="q", fork=fork)
    talk.says(CLAUDE, ResponseStart("claude", "q"), id="answer", fork=fork)
    talk.says(CLAUDE, ResponseChunk("Yes"), id="chunk")
    talk.says(CLAUDE, ResponseEnd("complete"), id="end")

    assert [talk.readers(i) for i in ("answer", "chunk", "end")] == [{"alice", "claude"}] * 3


@pytest.mark.parametrize("said", [ResponseChunk("Yes"), ResponseEnd("complete")])
@pytest.mark.parametrize("ref", ["answer", None])
@pytest.mark.parametrize("begun", [None, "other"])
@proves("OPEN-44", "PVP-16.1-3")
def test_no_answer_goes_on_elsewhere(said: Body, ref: str | None, begun: str | None) -> None:
    talk = a_talk()
    aside = talk.fork("Aside", CLAUDE)
    where = begun and talk.fork("Other", CLAUDE)
    talk.says(ALICE, prompts(), id="q", fork=where)
    talk.says(CLAUDE, ResponseStart("claude", "q"), id="answer", fork=where)

    with refused(Why.WRONG_STATE):
        talk.tries(CLAUDE, said, ref=ref, fork=aside)

    assert talk.allows(CLAUDE, said, ref=ref, fork=where)


@proves("OPEN-47")
def test_whoever_left_is_in_the_fork_again_after_coming_back() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.says(BOB, left(BOB).body)
    with refused(Why.NO_MEMBER):
        talk.tries(BOB, proposes(), fork=fork)

    back = joined(BOB, R.NAVIGATOR)
    talk.says(back.actor, back.body)

    assert talk.allows(BOB, adds("key"), fork=fork)


# Nested


@proves("OPEN-47")
def test_a_fork_inside_a_fork_takes_from_it() -> None:
    talk = a_talk()
    outer = talk.fork("Outer", BOB, CLAUDE)
    talk.says(CLAUDE, proposes(), id="p", fork=outer)

    facts = talk.says(BOB, forks("Inner", CLAUDE, point="p"), fork=outer)

    inner = talk.room.forks["inner"]
    assert facts.records[0].fork == "inner"
    assert (inner.parent, inner.members) == (outer, seats("bob", "claude"))
    with refused(Why.NO_MEMBER, "Not here to take along: carol"):
        talk.tries(BOB, forks("Inner", CAROL), fork=outer)


# Context


@proves("OPEN-47", "PVP-16.1-1")
def test_context_is_taken_along_as_far_as_its_members_could_see_it() -> None:
    talk = a_talk()
    talk.says(BOB, adds("open"))
    talk.says(BOB, adds("some", to=["carol", "codex"]))
    talk.says(CAROL, adds("hers", to=["codex"]))
    talk.says(CODEX, adds("theirs", to=["bob"]))

    fork = talk.fork("Aside", CAROL, CLAUDE, copy=True)

    seen = {key: item.visible_to for key, item in talk.items(fork).items()}
    assert seen == {"open": None, "some": {"carol"}, "hers": {"carol"}}
    assert set(talk.shelf()) == {"open", "some", "hers", "theirs"}


@proves("PVP-16.1-1", "OPEN-47")
def test_without_a_copy_a_fork_begins_with_an_empty_shelf() -> None:
    talk = a_talk()
    talk.says(BOB, adds("open"))

    assert talk.shelf(talk.fork("Aside", CAROL)) == {}


@proves("OPEN-47")
def test_what_changes_in_a_fork_changes_there_alone() -> None:
    talk = a_talk()
    for key in ("a", "b"):
        talk.says(BOB, adds(key, "old"))
    fork = talk.fork("Aside", BOB, copy=True)

    talk.says(BOB, updates("a", "new"), fork=fork)
    talk.says(BOB, removes("b"), fork=fork)
    talk.says(BOB, adds("c"), fork=fork)

    assert talk.shelf() == {"a": "old", "b": "old"}
    assert talk.shelf(fork) == {"a": "new", "c": "text"}


@proves("OPEN-47")
def test_a_nested_fork_copies_from_the_fork_it_left() -> None:
    talk = a_talk()
    talk.says(BOB, adds("trunk"))
    outer = talk.fork("Outer", BOB, CLAUDE)
    talk.says(BOB, adds("outer"), fork=outer)

    inner = talk.fork("Inner", BOB, copy=True, fork=outer)

    assert set(talk.shelf(inner)) == {"outer"}


def test_there_is_room_for_only_so_many_copies() -> None:
    talk = a_talk()
    talk.says(BOB, adds("large", "x" * 600))
    house = House(limits=Limits(context=1000))

    with refused(Why.TOO_LARGE, "No room for a copy"):
        talk.tries(BOB, forks("Aside", copy=True), house=house)
    assert talk.allows(BOB, forks("Aside"), house=house)


# Going there and back


@proves("PVP-16.2-1", "OPEN-47")
def test_a_member_goes_to_a_fork_and_back() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)

    facts = talk.says(BOB, switches(fork))
    assert facts == [ForkSwitched(said=switches(fork), seat="bob", target=fork)]
    assert [talk.room.members[seat].fork for seat in ("bob", "claude")] == [fork, None]

    for trunk in ("main", "trunk", ""):
        talk.says(BOB, switches(trunk))
        assert talk.room.members["bob"].fork is None


@proves("OPEN-47")
def test_only_an_admin_enters_where_they_do_not_belong() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE, by=BOB)
    talk.says(CLAUDE, proposes(), id="before", fork=fork)
    with refused(Why.FORBIDDEN, f"You are not in the fork {fork}"):
        talk.tries(CAROL, switches(fork))
    assert "alice" not in talk.readers("before")

    talk.says(ALICE, switches(fork))

    assert "alice" in talk.readers("before")
    assert talk.allows(ALICE, approves(ALICE, "before"), fork=fork)


def test_there_is_no_way_to_a_fork_that_does_not_exist() -> None:
    with refused(Why.UNKNOWN, "There is no fork other"):
        a_talk().tries(ALICE, switches("other"))


@proves("OPEN-17", "OPEN-47")
def test_the_first_who_can_answer_a_gate_is_asked_when_they_enter() -> None:
    talk = a_talk(default_gate_quorum=Everyone())
    fork = talk.fork("Aside", CLAUDE, by=BOB)
    talk.says(ALICE, changes_roles(ALICE, BOB, [R.NAVIGATOR], [R.DRIVER]))
    talk.says(CLAUDE, proposes(), id="p", fork=fork)
    assert not gate_on(talk.room, "p").ballot.roll

    talk.says(ALICE, switches(fork))
    talk.says(ALICE, approves(ALICE, "p"))

    assert may_run(talk.room, "p")


@proves("OPEN-48")
def test_a_merged_fork_can_be_visited_but_nothing_is_said_in_it() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.merges(fork)

    assert kinds(talk.says(BOB, switches(fork))) == [ForkSwitched]
    for body in (adds("key"), forks("Inner")):
        with refused(Why.WRONG_STATE, "was merged; it can only be read"):
            talk.tries(BOB, body, fork=fork)
