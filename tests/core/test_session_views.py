"""What a reader is shown of a session."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.refusal import Refused
from accord.core.room.forks import ForkCreate
from accord.core.room.interrupts import InterruptRaise
from accord.core.room.members import SessionLeave
from accord.core.room.merges import MergePropose
from accord.core.room.shelf import ContextAdd
from accord.core.room.state import OnTimeout, Presence, Room, Strategy, Urgency
from accord.core.views import sessions
from tests.core.room.test_decisions import ALONE, HOUSE, a_room, bound, submits
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    Step,
    after,
    after_seconds,
    ends,
    given,
    joined,
    left,
    now,
    opened,
    prompts,
    proposes,
    time_is,
    when,
)


def test_a_name_of_another_workspace_is_another_principal() -> None:
    room = given(opened(by=ALICE))
    elsewhere = Actor(ALICE.seat, Kind.HUMAN, workspace="elsewhere", grant=ALICE.grant)

    assert sessions.known_to(room, ALICE)
    assert not sessions.known_to(room, elsewhere)
    assert not sessions.known_to(room, BOB)


@pytest.mark.parametrize("seat", [ALICE.seat, "nobody"])
def test_open_questions_are_for_members(seat: str) -> None:
    room = given(opened(by=ALICE, require_approval_for=("all",)), joined(CLAUDE, Role.DRIVER))
    room = after(room, when(room, CLAUDE, proposes(), id="p"))

    shown = sessions.detail(room, seat)

    here = seat == ALICE.seat
    assert len(shown["gates"]) == len(shown["tools"]) == here
    assert shown["standing"] == ("member" if here else None)


def test_who_lost_the_connection_for_long_is_out_but_not_gone() -> None:
    absent = given(opened(by=ALICE), joined(BOB, Role.DRIVER), now(BOB, Presence.DISCONNECTED))

    lost = given(time_is(after_seconds(3600)), room=absent)
    gone = given(left(BOB), room=given(opened(by=ALICE), joined(BOB, Role.DRIVER)))

    assert (sessions.standing(lost, BOB.seat), sessions.lost(lost, BOB.seat)) == ("former", True)
    assert (sessions.standing(gone, BOB.seat), sessions.lost(gone, BOB.seat)) == ("former", False)
    assert not sessions.lost(absent, BOB.seat)


def test_who_has_left_sees_nobody_but_themselves() -> None:
    room = given(opened(by=ALICE), joined(BOB, Role.DRIVER), left(BOB), joined(CLAUDE, Role.DRIVER))

    def people(seat: str) -> list[str]:
        return [each["id"] for each in sessions.detail(room, seat)["members"]]

    assert people(ALICE.seat) == [ALICE.seat, CLAUDE.seat]
    assert people(BOB.seat) == [BOB.seat]
    assert people("nobody") == []


def test_members_read_what_is_for_them_and_former_ones_what_they_saw() -> None:
    room = given(opened(by=ALICE), joined(BOB, Role.DRIVER))
    said = when(room, BOB, SessionLeave(reason="done")).records[-1]
    room = given(left(BOB), room=room)
    later = replace(said, version=said.version + 100)

    assert sessions.may_read(room, ALICE.seat, later)
    assert not sessions.may_read(room, BOB.seat, later)
    assert sessions.may_read(room, BOB.seat, replace(said, version=1))
    assert not sessions.may_read(room, ALICE.seat, replace(said, to=frozenset({BOB.seat})))
    assert not sessions.may_read(room, ALICE.seat, replace(said, said=None))
    assert not sessions.may_read(room, "nobody", said)


def test_a_session_is_active_paused_or_over() -> None:
    going = given(
        opened(by=ALICE, on_participant_timeout=OnTimeout.PAUSE_SESSION), joined(BOB, Role.DRIVER)
    )
    paused = given(now(BOB, Presence.DISCONNECTED), room=going)
    over = after(going, when(going, ALICE, ends()))

    assert [sessions.status(each) for each in (going, paused, over)] == [
        "active",
        "paused",
        "completed",
    ]


def forked() -> Room:
    """Alice and Claude in a fork, Bob outside; context in both places, a stopped agent."""
    plan = ContextAdd("plan", "text", "for all")
    aside = ContextAdd("aside", "text", "for claude", visible_to=("claude",))
    finding = ContextAdd("finding", "text", "inside")
    return given(
        opened(by=ALICE, require_approval_for=("all",)),
        joined(BOB, Role.DRIVER),
        joined(CLAUDE, Role.DRIVER),
        Step(ALICE, plan, id="p"),
        Step(ALICE, aside),
        Step(ALICE, ForkCreate("Try", "p", "", ("claude",), copy_context=False)),
        Step(CLAUDE, finding, fork="try"),
        Step(CLAUDE, proposes(), fork="try"),
        Step(ALICE, MergePropose("try", "main", Strategy.APPEND, "It did")),
        Step(ALICE, InterruptRaise(Urgency.STOP, "Wait", "claude")),
    )


def test_a_fork_is_known_to_all_and_what_is_in_it_to_its_members() -> None:
    room = forked()
    hers, his = sessions.detail(room, "alice"), sessions.detail(room, "bob")

    assert [fork["id"] for fork in his["forks"]] == ["try"]
    assert his["forks"][0]["members"] == ["alice", "claude"]
    assert (len(hers["gates"]), len(hers["tools"]), hers["open_gates"]) == (1, 1, 1)
    assert his["gates"] == his["tools"] == his["merges"] == []
    assert his["open_gates"] == 0
    assert [merge["source"] for merge in hers["merges"]] == ["try"]
    assert hers["halted"] == his["halted"] == {"claude": "stop"}
    assert sessions.detail(room, "nobody")["halted"] == {}


def test_context_is_shown_to_whom_it_is_for() -> None:
    room = forked()

    def keys(seat: str | None) -> list[str]:
        return [item["key"] for item in sessions.detail(room, seat)["context"]]

    assert keys("claude") == keys("alice") == keys(None) == ["plan", "aside", "finding"]
    assert keys("bob") == ["plan"]
    assert keys("nobody") == []


@pytest.mark.parametrize(
    ("seat", "key", "fork"),
    [
        ("bob", "aside", None),
        ("bob", "finding", "try"),
        ("alice", "finding", None),
        ("alice", "finding", "no-such-fork"),
        ("nobody", "plan", None),
    ],
)
def test_what_one_may_not_see_is_not_there(seat: str, key: str, fork: str | None) -> None:
    with pytest.raises(Refused, match=f"There is no context {key} here"):
        sessions.context(forked(), seat, key, fork)


def test_an_item_is_read_where_it_lies() -> None:
    room = forked()

    assert sessions.context(room, "claude", "finding", "try")["content"] == "inside"
    assert sessions.context(room, "bob", "plan", None)["content_ref"] is None
    assert sessions.context(room, None, "aside", None)["content"] == "for claude"


def test_what_was_said_in_a_fork_is_read_by_its_members() -> None:
    room = forked()
    inside = when(room, ALICE, prompts(), id="q", fork="try").records[0]
    gone = given(left(CLAUDE), room=after(room, when(room, ALICE, prompts(), id="q", fork="try")))

    assert sessions.may_read(room, "alice", inside)
    assert not sessions.may_read(room, "bob", inside)
    assert sessions.may_read(gone, "claude", inside)
    assert not sessions.may_read(gone, "nobody", inside)
    assert sessions.status(given(Step(ALICE, ends()), room=room)) == "completed"


def test_a_held_proposal_is_shown_with_its_reason() -> None:
    room = a_room((ALICE, submits(), "b"), (CLAUDE, bound(), "p"), (CLAUDE, proposes(), "q"))

    shown = sessions.detail(room, "bob")

    held, plain = shown["tools"]
    assert (shown["held"], shown["open_gates"]) == (1, 1)
    assert held["held"]["why"].startswith("DEPLOY is STANDBY")
    assert held["held"]["until"].startswith("People are asked once")
    assert held["decision"]["verdict"] == "DO LATER"
    assert (plain["held"], plain["decision"]) == (None, None)


def test_those_who_vote_see_what_the_rules_say_and_who_judged() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"), (CLAUDE, bound(), "p"))
    (gate,) = sessions.detail(room, "bob")["gates"]
    assert gate["action"]["decision"]["table"] == ""

    mine = submits(ALONE, "decision:release:alice")  # whatever bob calls it, it is bob's
    room = after(room, when(room, BOB, mine, house=HOUSE))

    (gate,) = sessions.detail(room, "bob")["gates"]
    said = gate["action"]["decision"]
    assert (said["batch"], said["item"], said["verdict"]) == ("release", "DEPLOY", "DO NOW")
    assert len(said["sha256"]) == 64
    assert said["judges"] == ["claude", "bob"]
    assert said["convergence"] == "CONVERGED"
    assert "| DEPLOY |" in said["table"]
