"""Joining and leaving: who comes in with which rights, and what goes with whoever leaves."""

import msgspec
import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.effects import ReplayedMessage
from accord.core.kernel.messages import Failure
from accord.core.kernel.records import MembershipChange
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.approval.votes import GateRejected
from accord.core.room.conversation.responses import ResponseEnded, ResponseStart
from accord.core.room.membership.announcements import (
    MemberAnnounced,
    ParticipantAnnounce,
    member_announcements,
)
from accord.core.room.membership.joining import MemberJoined, SessionJoin
from accord.core.room.membership.leaving import MemberLeft, SessionLeave
from accord.core.room.membership.presence import PresenceChanged, disconnect_update
from accord.core.room.room_settings import Category
from accord.core.room.state import Presence, Room
from tests.helpers.room.join_results import announcement_of, granted_rights
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    T0,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    given,
    join_step,
    leave_step,
    participant_announce,
    presence_step,
    prompt_submit,
    relays_of,
    role_change,
    script_step,
    seconds_after_start,
    session_join,
    tool_propose,
    types_of,
    when,
    with_credential,
)
from tests.spec import proves

R, C = Role, Capability


def in_workspace(actor: Actor, workspace: str) -> Actor:
    """Somebody of the same name elsewhere."""
    return msgspec.structs.replace(actor, workspace=workspace)


# Coming in


@proves("PVP-7.1-2", "PVP-2-3", "OPEN-30")
def test_who_joins_is_announced_to_the_room() -> None:
    room = given(create_step())

    facts = when(room, BOB, session_join(BOB, R.DRIVER), id="j")

    assert types_of(facts) == [MemberJoined, MemberAnnounced]
    assert announcement_of(facts) == participant_announce(BOB, R.DRIVER)
    assert [record.ref for record in facts.records] == [None, "j"]
    assert after(room, facts).members["bob"].name == "Bob"


@proves("OPEN-30")
def test_join_and_leave_change_the_membership() -> None:
    assert (MemberJoined.membership, MemberLeft.membership, MemberAnnounced.membership) == (
        MembershipChange.IN,
        MembershipChange.OUT,
        None,
    )


@proves("OPEN-7")
def test_a_session_that_was_never_created_cannot_be_joined() -> None:
    with expect_refusal(Reason.NO_ROOM):
        when(given(), BOB, session_join(BOB))


@proves("OPEN-30")
def test_a_joiner_hears_who_is_here_with_what_they_were_granted() -> None:
    told = script_step(CLAUDE, participant_announce(CLAUDE, R.ADMIN, name="Claude the Second"))
    room = given(create_step(), join_step(CLAUDE, R.DRIVER, capabilities=(C.APPROVE,)), told)

    (alice, claude) = member_announcements(room)

    assert isinstance(alice.body, ParticipantAnnounce)
    assert alice.body.roles == (R.ADMIN,)
    assert claude == ReplayedMessage(
        room.members["claude"].announced,
        "system",
        ParticipantAnnounce(
            id="claude",
            name="Claude the Second",
            kind="agent",
            roles=(R.DRIVER,),
            transport="websocket",
            capabilities=(C.APPROVE,),
        ),
    )


@proves("PVP-6.3-3", "PVP-3.3-2", "OPEN-28")
@pytest.mark.parametrize("versions", [(), (2,), (0, 2, 3)])
def test_without_a_version_in_common_nobody_joins(versions: tuple[int, ...]) -> None:
    body = SessionJoin(participant_announce(BOB), versions)

    with pytest.raises(Refused) as no:
        when(given(create_step()), BOB, body)

    assert no.value.reason is Reason.UNSUPPORTED_VERSION
    assert no.value.details == {"supported_versions": [1]}


@proves("PVP-6.3-3")
def test_one_version_in_common_is_enough() -> None:
    facts = when(given(create_step()), BOB, SessionJoin(participant_announce(BOB), (3, 2, 1)))

    assert types_of(facts) == [MemberJoined, MemberAnnounced]


@proves("PVP-6.3-2", "OPEN-28")
def test_a_full_room_refuses_and_says_how_many_it_holds() -> None:
    room = given(create_step(max_participants=2), join_step(BOB, R.OBSERVER))

    with pytest.raises(Refused) as no:
        when(room, CAROL, session_join(CAROL, R.DRIVER))

    assert no.value.reason is Reason.FULL
    assert no.value.details == {"reason": "max_participants", "limit": 2, "absent": []}


@proves("OPEN-28", "OPEN-6")
def test_whoever_is_in_a_full_room_may_join_again_and_does_not_count_twice() -> None:
    room = given(create_step(max_participants=2), join_step(BOB, R.OBSERVER))

    for who in (ALICE, BOB):
        room = after(room, when(room, who, session_join(who)))

    assert set(room.members) == {"alice", "bob"}


@proves("OPEN-28")
def test_the_disconnected_count_and_those_who_left_do_not() -> None:
    full = given(
        create_step(max_participants=2), join_step(BOB), presence_step(BOB, Presence.DISCONNECTED)
    )
    with expect_refusal(Reason.FULL):
        when(full, CAROL, session_join(CAROL))

    room = given(leave_step(BOB), room=full)

    assert types_of(when(room, CAROL, session_join(CAROL))) == [MemberJoined, MemberAnnounced]


@proves("OPEN-49", "UNI-1")
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
def test_a_session_of_another_workspace_does_not_exist(who: Actor) -> None:
    room = given(create_step(), join_step(BOB), leave_step(BOB))
    stranger = in_workspace(with_credential(who, *R), "elsewhere")

    with expect_refusal(Reason.NO_ROOM, "There is no session r"):
        when(room, stranger, session_join(stranger))


# Coming back


@proves("OPEN-6")
def test_the_creator_s_own_join_completes_them_and_keeps_admin() -> None:
    room = given(create_step(by=ALICE))
    asked = SessionJoin(
        ParticipantAnnounce(
            id="alice",
            name="Alice Liddell",
            kind="human",
            roles=(R.DRIVER, R.APPROVER),
            transport="stdio",
            metadata={"tz": "CET"},
        ),
        supported_versions=(1,),
    )

    room = after(room, when(room, ALICE, asked))

    alice = room.members["alice"]
    assert (alice.name, alice.transport, alice.metadata) == (
        "Alice Liddell",
        "stdio",
        {"tz": "CET"},
    )
    assert alice.roles == {R.ADMIN, R.DRIVER, R.APPROVER}
    assert len(room.members) == 1


@proves("OPEN-6", "OPEN-8")
def test_the_creator_stays_admin_even_where_nothing_else_is_granted() -> None:
    room = given(create_step(by=ALICE))

    facts = when(room, with_credential(ALICE, R.DRIVER), session_join(ALICE, R.APPROVER))

    assert granted_rights(facts) == ({R.ADMIN}, set())


@proves("OPEN-9", "OPEN-8")
@pytest.mark.parametrize("gone", [False, True])
def test_a_demotion_outlives_joining_again(gone: bool) -> None:
    bob = with_credential(BOB, *R)
    demoted = script_step(ALICE, role_change(ALICE, BOB, [R.APPROVER, R.DRIVER], [R.OBSERVER]))
    room = given(create_step(), join_step(bob, R.APPROVER, R.DRIVER), demoted)
    room = given(*([leave_step(BOB)] if gone else []), room=room)

    facts = when(room, bob, session_join(BOB, R.APPROVER, R.ADMIN, caps=(C.APPROVE,)))

    assert granted_rights(facts) == ({R.OBSERVER}, set())
    assert after(room, facts).members["bob"].settled


@proves("OPEN-34")
@pytest.mark.parametrize("gone", [False, True])
def test_roles_that_the_room_gave_are_there_after_joining_again(gone: bool) -> None:
    promoted = script_step(ALICE, role_change(ALICE, BOB, [R.DRIVER], [R.ADMIN]))
    room = given(
        create_step(), join_step(BOB, R.DRIVER), promoted, *([leave_step(BOB)] if gone else [])
    )

    facts = when(room, with_credential(BOB, R.DRIVER), session_join(BOB, R.DRIVER))

    assert granted_rights(facts) == ({R.ADMIN}, set())


def test_roles_from_a_credential_are_asked_for_anew() -> None:
    room = given(create_step(), join_step(BOB, R.APPROVER, capabilities=(C.FORK,)))

    facts = when(room, with_credential(BOB, R.DRIVER), session_join(BOB, R.DRIVER))

    assert granted_rights(facts) == ({R.DRIVER}, set())


@proves("OPEN-34")
def test_the_last_admin_may_leave_and_is_admin_again_on_return() -> None:
    room = given(create_step(by=ALICE), join_step(BOB, R.DRIVER), leave_step(ALICE))
    assert all(R.ADMIN not in member.roles for member in room.members.values())

    facts = when(room, with_credential(ALICE, R.DRIVER), session_join(ALICE, R.DRIVER))

    assert granted_rights(facts) == ({R.ADMIN, R.DRIVER}, set())


@proves("OPEN-29", "UNI-2", "UNI-22")
def test_joining_again_makes_no_second_member_and_everybody_is_there() -> None:
    room = given(
        create_step(),
        join_step(BOB, R.DRIVER),
        presence_step(BOB, Presence.DISCONNECTED, at=seconds_after_start(1)),
    )

    room = given(join_step(BOB, R.DRIVER, at=seconds_after_start(2)), room=room)

    assert list(room.members) == ["alice", "bob"]
    assert room.members["bob"].presence is Presence.ACTIVE
    assert room.members["bob"].since == seconds_after_start(2)


@proves("OPEN-36")
def test_the_way_somebody_came_does_not_tell_two_joins_apart() -> None:
    join = session_join(BOB, R.DRIVER)
    by_post = msgspec.structs.replace(participant_announce(BOB, R.DRIVER), transport="http")
    said = SessionJoin(participant=by_post, supported_versions=(1,))

    assert join.is_retry_of(said)
    assert not session_join(BOB, R.OBSERVER).is_retry_of(said)
    assert not join.is_retry_of(SessionLeave())


# Leaving


@proves("PVP-6.4-2", "PVP-6.4-1", "PVP-8.2-2")
def test_the_room_is_told_why_a_member_left_and_of_the_new_presence() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER))

    facts = when(room, BOB, SessionLeave(reason="Lunch"))
    room = after(room, facts)

    assert facts == [
        MemberLeft(said=SessionLeave(reason="Lunch"), seat="bob"),
        PresenceChanged(said=disconnect_update("bob", T0)),
    ]
    assert [(record.sender, record.to) for record in facts.records] == [
        ("bob", None),
        ("system", None),
    ]
    assert list(room.members) == ["alice"]
    assert list(room.former) == ["bob"]


def test_who_left_keeps_the_place_at_which_they_went() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER))

    facts = when(room, BOB, SessionLeave(), at=seconds_after_start(9))
    record = facts.records[0]

    former = after(room, facts).former["bob"]
    assert (former.since, former.left) == (seconds_after_start(9), record.version)


def with_an_agent_at_work() -> Room:
    """Claude answers, waits for one tool and runs another; so does Codex."""
    script = [create_step(), join_step(BOB, R.APPROVER)]
    for agent in (CLAUDE, CODEX):
        prompt, asked, run = (f"{agent.principal}-{thing}" for thing in ("prompt", "asked", "run"))
        script += [
            join_step(agent, R.DRIVER),
            script_step(ALICE, prompt_submit(agent), id=prompt),
            script_step(
                agent, ResponseStart(agent.principal, prompt), id=f"{agent.principal}-answer"
            ),
            script_step(agent, tool_propose(agent), id=asked),
            script_step(agent, tool_propose(agent, category=Category.FILE_READ), id=run),
        ]
    return given(*script)


@proves("PVP-6.4-2")
def test_the_streams_of_who_leaves_are_closed_first() -> None:
    room = with_an_agent_at_work()

    facts = when(room, CLAUDE, SessionLeave())
    ended = [fact for fact in facts if isinstance(fact, ResponseEnded)]

    assert [(event.ref, event.said.finish_reason) for event in ended] == [
        ("claude-answer", "interrupted")
    ]
    assert types_of(facts)[-2:] == [MemberLeft, PresenceChanged]
    assert list(after(room, facts).streams) == ["codex-answer"]


def test_the_gates_of_who_leaves_are_closed_by_the_server() -> None:
    room = with_an_agent_at_work()
    gate = gate_on(room, "claude-asked").id

    facts = when(room, CLAUDE, SessionLeave())
    closed = [record for record in facts.records if isinstance(record.event, GateRejected)]

    assert [(record.sender, record.ref) for record in closed] == [("system", gate)]
    failures = [said.body for said in relays_of(facts) if isinstance(said.body, Failure)]
    assert [failure.related_to for failure in failures] == ["claude-asked", "claude-run"]
    assert list(after(room, facts).gates) == [gate_on(room, "codex-asked").id]


def test_the_tools_of_a_leaver_are_closed() -> None:
    room = with_an_agent_at_work()

    room = after(room, when(room, CLAUDE, SessionLeave()))

    assert list(room.tools) == ["codex-asked", "codex-run"]
    assert room.past["claude-asked"] == "rejected"
    assert room.past["claude-run"] == "rejected: claude left"


@proves("OPEN-17")
def test_the_vote_of_who_leaves_stays_and_the_place_of_who_had_none_goes() -> None:
    room = given(
        create_step(default_gate_quorum=Everyone()),
        *(join_step(who, R.APPROVER) for who in (BOB, CAROL)),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )
    gate = gate_on(room, "p").id
    room = given(
        script_step(BOB, gate_approve(BOB, gate)), leave_step(BOB), leave_step(CAROL), room=room
    )

    ballot = gate_on(room, "p").ballot

    assert ballot.yes == {"bob"}
    assert ballot.roll == {"alice", "bob"}
    assert types_of(when(room, ALICE, gate_reject(ALICE, gate)))[0] is GateRejected
