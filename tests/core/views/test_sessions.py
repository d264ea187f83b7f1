"""What a reader is shown of a session."""

import pytest
from msgspec.structs import asdict, replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.forking.fork_state import Fork, MergeStrategy
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.forking.merges import MergePropose
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.shared_context.context_items import ContextAdd, ContextUpdate
from accord.core.room.state import Presence, Room, Urgency
from accord.core.views import sessions
from tests.core.room.decisions.test_rulings import ALONE, HOUSE, a_room, bound, submits
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    OPEN_POLICY,
    Step,
    after,
    create_step,
    given,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    seconds_after_start,
    session_end,
    tick_step,
    tool_propose,
    when,
)


def test_a_name_of_another_workspace_is_another_principal() -> None:
    room = given(create_step(by=ALICE))
    elsewhere = Actor(
        ALICE.principal, Kind.HUMAN, workspace="elsewhere", credential=ALICE.credential
    )

    assert sessions.is_known_to(room, ALICE)
    assert not sessions.is_known_to(room, elsewhere)
    assert not sessions.is_known_to(room, BOB)


@pytest.mark.parametrize("gated", [True, False])
def test_a_proposal_says_whether_a_gate_decides_about_it(*, gated: bool) -> None:
    """Without a gate it is granted at once; who relies on people has to tell that apart."""
    room = given(
        create_step(by=ALICE, require_approval_for=("all",) if gated else ()),
        join_step(CLAUDE, Role.DRIVER),
    )
    room = after(room, when(room, CLAUDE, tool_propose(), id="p"))

    view = sessions.proposal_view(room, room.tools["p"])

    assert (view["gated"], view["approved"]) == (gated, not gated)


@pytest.mark.parametrize("seat", [ALICE.principal, "nobody"])
def test_open_questions_are_for_members(seat: str) -> None:
    room = given(
        create_step(by=ALICE, require_approval_for=("all",)), join_step(CLAUDE, Role.DRIVER)
    )
    room = after(room, when(room, CLAUDE, tool_propose(), id="p"))

    shown = sessions.session_detail(room, seat)

    here = seat == ALICE.principal
    assert len(shown["gates"]) == len(shown["tools"]) == here
    assert shown["standing"] == ("member" if here else None)


def test_a_member_lost_for_long_without_tokens_is_out_but_did_not_leave() -> None:
    absent = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER),
        presence_step(BOB, Presence.DISCONNECTED),
    )

    lost = given(tick_step(seconds_after_start(3600)), room=absent, policy=OPEN_POLICY)
    gone = given(leave_step(BOB), room=given(create_step(by=ALICE), join_step(BOB, Role.DRIVER)))

    assert (
        sessions.membership_of(lost, BOB.principal),
        sessions.was_disconnected(lost, BOB.principal),
    ) == ("former", True)
    assert (
        sessions.membership_of(gone, BOB.principal),
        sessions.was_disconnected(gone, BOB.principal),
    ) == ("former", False)
    assert not sessions.was_disconnected(absent, BOB.principal)


def test_who_has_left_sees_nobody_but_themselves() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER),
        leave_step(BOB),
        join_step(CLAUDE, Role.DRIVER),
    )

    def people(seat: str) -> list[str]:
        return [each["id"] for each in sessions.session_detail(room, seat)["members"]]

    assert people(ALICE.principal) == [ALICE.principal, CLAUDE.principal]
    assert people(BOB.principal) == [BOB.principal]
    assert people("nobody") == []


def test_members_read_what_is_for_them_and_former_ones_what_they_saw() -> None:
    room = given(create_step(by=ALICE), join_step(BOB, Role.DRIVER))
    said = when(room, BOB, SessionLeave(reason="done")).records[-1]
    room = given(leave_step(BOB), room=room)
    later = replace(said, version=said.version + 100)

    assert sessions.may_read(room, ALICE.principal, later)
    assert not sessions.may_read(room, BOB.principal, later)
    assert sessions.may_read(room, BOB.principal, replace(said, version=1))
    assert not sessions.may_read(
        room, ALICE.principal, replace(said, to=frozenset({BOB.principal}))
    )
    assert not sessions.may_read(room, ALICE.principal, replace(said, said=None))
    assert not sessions.may_read(room, "nobody", said)


def test_a_session_is_active_paused_or_over() -> None:
    going = given(
        create_step(by=ALICE, on_participant_timeout=AbsencePolicy.PAUSE_SESSION),
        join_step(BOB, Role.DRIVER),
    )
    paused = given(presence_step(BOB, Presence.DISCONNECTED), room=going)
    over = after(going, when(going, ALICE, session_end()))

    assert [sessions.session_status(each) for each in (going, paused, over)] == [
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
        create_step(by=ALICE, require_approval_for=("all",)),
        join_step(BOB, Role.DRIVER),
        join_step(CLAUDE, Role.DRIVER),
        Step(ALICE, plan, id="p"),
        Step(ALICE, aside),
        Step(ALICE, ForkCreate("Try", "p", "", ("claude",), copy_context=False)),
        Step(CLAUDE, finding, fork="try"),
        Step(CLAUDE, tool_propose(), fork="try"),
        Step(ALICE, MergePropose("try", "main", MergeStrategy.APPEND, "It did")),
        Step(ALICE, InterruptRaise(Urgency.STOP, "Wait", "claude")),
    )


def test_a_fork_is_known_to_all_and_what_is_in_it_to_its_members() -> None:
    room = forked()
    hers, his = sessions.session_detail(room, "alice"), sessions.session_detail(room, "bob")

    assert [fork["id"] for fork in his["forks"]] == ["try"]
    assert his["forks"][0]["members"] == ["alice", "claude"]
    assert (len(hers["gates"]), len(hers["tools"]), hers["open_gates"]) == (1, 1, 1)
    assert his["gates"] == his["tools"] == his["merges"] == []
    assert his["open_gates"] == 0
    assert [merge["source"] for merge in hers["merges"]] == ["try"]
    assert hers["halted"] == his["halted"] == {"claude": "stop"}
    assert sessions.session_detail(room, "nobody")["halted"] == {}


def test_fork_names_the_keys_that_a_merge_would_have_to_resolve() -> None:
    changed = ContextUpdate("plan", "no diff", new_content="elsewhere")
    aside = ContextAdd("aside", "text", "hers", visible_to=("alice",))
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER),
        Step(ALICE, ContextAdd("plan", "text", "first"), id="p"),
        Step(ALICE, ForkCreate("Try", "p", "", ("bob",), copy_context=True)),
        Step(BOB, changed, fork="try"),
        Step(ALICE, changed),
        Step(BOB, replace(aside, content="his", visible_to=("bob",)), fork="try"),
        Step(ALICE, aside),
        Step(BOB, ForkCreate("Further", "p", "", ("alice",), copy_context=True), fork="try"),
        Step(ALICE, replace(changed, new_content="third"), fork="further"),
    )

    def conflicts(room: Room, seat: str | None) -> dict[str, list[str]]:
        forks = sessions.session_detail(room, seat)["forks"]
        return {fork["id"]: fork["conflicts"] for fork in forks}

    assert conflicts(room, "alice") == conflicts(room, "bob") == {"try": ["plan"], "further": []}
    assert conflicts(room, None) == {"try": ["aside", "plan"], "further": []}
    assert conflicts(room, "nobody") == {}
    merged = Fork(**{**asdict(room.forks["try"]), "merged": True, "into": None})
    room = replace(room, forks={**room.forks, "try": merged})
    assert conflicts(room, "alice") == {"try": [], "further": ["plan"]}
    outside = replace(merged, merged=False, readers=frozenset({"bob"}))
    room = replace(room, forks={**room.forks, "try": outside})
    assert conflicts(room, "alice")["try"] == []


def test_context_is_shown_to_whom_it_is_for() -> None:
    room = forked()

    def keys(seat: str | None) -> list[str]:
        return [item["key"] for item in sessions.session_detail(room, seat)["context"]]

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
    with pytest.raises(Refused, match=f"There is no context item {key} here"):
        sessions.context_item(forked(), seat, key, fork)


def test_an_item_is_read_where_it_lies() -> None:
    room = forked()

    assert sessions.context_item(room, "claude", "finding", "try")["content"] == "inside"
    assert sessions.context_item(room, "bob", "plan", None)["content_ref"] is None
    assert sessions.context_item(room, None, "aside", None)["content"] == "for claude"


def test_what_was_said_in_a_fork_is_read_by_its_members() -> None:
    room = forked()
    inside = when(room, ALICE, prompt_submit(), id="q", fork="try").records[0]
    gone = given(
        leave_step(CLAUDE), room=after(room, when(room, ALICE, prompt_submit(), id="q", fork="try"))
    )

    assert sessions.may_read(room, "alice", inside)
    assert not sessions.may_read(room, "bob", inside)
    assert sessions.may_read(gone, "claude", inside)
    assert not sessions.may_read(gone, "nobody", inside)
    assert sessions.session_status(given(Step(ALICE, session_end()), room=room)) == "completed"


def test_a_held_proposal_is_shown_with_its_reason() -> None:
    room = a_room((ALICE, submits(), "b"), (CLAUDE, bound(), "p"), (CLAUDE, tool_propose(), "q"))

    shown = sessions.session_detail(room, "bob")

    held, plain = shown["tools"]
    assert (shown["held"], shown["open_gates"]) == (1, 1)
    assert held["held"]["why"].startswith("DEPLOY is STANDBY")
    assert held["held"]["until"].startswith("Its gate opens once")
    assert held["decision"]["verdict"] == "DO LATER"
    assert (plain["held"], plain["decision"]) == (None, None)


def test_those_who_vote_see_what_the_rules_say_and_who_judged() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"), (CLAUDE, bound(), "p"))
    (gate,) = sessions.session_detail(room, "bob")["gates"]
    assert gate["action"]["decision"]["table"] == ""

    mine = submits(ALONE, "decision:release:alice")  # whatever bob calls it, it is bob's
    room = after(room, when(room, BOB, mine, policy=HOUSE))

    (gate,) = sessions.session_detail(room, "bob")["gates"]
    said = gate["action"]["decision"]
    assert (said["batch"], said["item"], said["verdict"]) == ("release", "DEPLOY", "DO NOW")
    assert len(said["sha256"]) == 64
    assert said["judges"] == ["claude", "bob"]
    assert said["convergence"] == "CONVERGED"
    assert "| DEPLOY |" in said["table"]
