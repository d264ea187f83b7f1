"""Joining and leaving: who comes in with which rights, and what goes with whoever leaves."""

import msgspec
import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.log import Door, Recall
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import Joined, Left, SessionJoin, SessionLeave
from accord.core.room.participants import Announced, ParticipantAnnounce, roll_call
from accord.core.room.state import Category, Presence, Room
from accord.core.room.streams import ResponseEnded, ResponseStart
from accord.core.room.votes import Rejected
from tests.helpers.members import announced, granted
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after,
    after_seconds,
    announces,
    approves,
    changes_roles,
    gate_on,
    given,
    holding,
    joined,
    joins,
    kinds,
    left,
    now,
    opened,
    prompts,
    proposes,
    refused,
    rejects,
    says,
    step,
    when,
)
from tests.spec import proves

R, C = Role, Capability


def in_workspace(actor: Actor, workspace: str) -> Actor:
    """Somebody of the same name elsewhere."""
    return msgspec.structs.replace(actor, workspace=workspace)


# Coming in


@proves("PVP-7.1-2", "PVP-2-3", "OPEN-30")
def test_who_joins_is_announced_to_the_room() -> None:
    room = given(opened())

    facts = when(room, BOB, joins(BOB, R.DRIVER), id="j")

    assert kinds(facts) == [Joined, Announced]
    assert announced(facts) == announces(BOB, R.DRIVER)
    assert [record.ref for record in facts.records] == [None, "j"]
    assert after(room, facts).members["bob"].name == "Bob"


@proves("OPEN-30")
def test_a_join_opens_the_door_and_a_leave_shuts_it() -> None:
    assert (Joined.door, Left.door, Announced.door) == (Door.IN, Door.OUT, None)


@proves("OPEN-7")
def test_a_session_that_was_never_created_cannot_be_joined() -> None:
    with refused(Why.NO_ROOM):
        when(given(), BOB, joins(BOB))


@proves("OPEN-30")
def test_a_joiner_hears_who_is_here_with_what_they_were_granted() -> None:
    told = step(CLAUDE, announces(CLAUDE, R.ADMIN, name="Claude the Second"))
    room = given(opened(), joined(CLAUDE, R.DRIVER, capabilities=(C.APPROVE,)), told)

    (alice, claude) = roll_call(room)

    assert isinstance(alice.body, ParticipantAnnounce)
    assert alice.body.roles == (R.ADMIN,)
    assert claude == Recall(
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
    body = SessionJoin(announces(BOB), versions)

    with pytest.raises(Refused) as no:
        when(given(opened()), BOB, body)

    assert no.value.why is Why.VERSION
    assert no.value.details == {"supported_versions": [1]}


@proves("PVP-6.3-3")
def test_one_version_in_common_is_enough() -> None:
    facts = when(given(opened()), BOB, SessionJoin(announces(BOB), (3, 2, 1)))

    assert kinds(facts) == [Joined, Announced]


@proves("PVP-6.3-2", "OPEN-28")
def test_a_full_room_refuses_and_says_how_many_it_holds() -> None:
    room = given(opened(max_participants=2), joined(BOB, R.OBSERVER))

    with pytest.raises(Refused) as no:
        when(room, CAROL, joins(CAROL, R.DRIVER))

    assert no.value.why is Why.FULL
    assert no.value.details == {"reason": "max_participants", "limit": 2}


@proves("OPEN-28", "OPEN-6")
def test_whoever_is_in_a_full_room_may_join_again_and_does_not_count_twice() -> None:
    room = given(opened(max_participants=2), joined(BOB, R.OBSERVER))

    for who in (ALICE, BOB):
        room = after(room, when(room, who, joins(who)))

    assert set(room.members) == {"alice", "bob"}


@proves("OPEN-28")
def test_the_disconnected_count_and_those_who_left_do_not() -> None:
    full = given(opened(max_participants=2), joined(BOB), now(BOB, Presence.DISCONNECTED))
    with refused(Why.FULL):
        when(full, CAROL, joins(CAROL))

    room = given(left(BOB), room=full)

    assert kinds(when(room, CAROL, joins(CAROL))) == [Joined, Announced]


@proves("OPEN-49", "UNI-1")
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
def test_a_session_of_another_workspace_does_not_exist(who: Actor) -> None:
    room = given(opened(), joined(BOB), left(BOB))
    stranger = in_workspace(holding(who, *R), "elsewhere")

    with refused(Why.NO_ROOM, "There is no session r"):
        when(room, stranger, joins(stranger))


# Coming back


@proves("OPEN-6")
def test_the_creator_s_own_join_completes_them_and_keeps_admin() -> None:
    room = given(opened(by=ALICE))
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
    room = given(opened(by=ALICE))

    facts = when(room, holding(ALICE, R.DRIVER), joins(ALICE, R.APPROVER))

    assert granted(facts) == ({R.ADMIN}, set())


@proves("OPEN-9", "OPEN-8")
@pytest.mark.parametrize("gone", [False, True])
def test_a_demotion_outlives_joining_again(gone: bool) -> None:
    bob = holding(BOB, *R)
    demoted = step(ALICE, changes_roles(ALICE, BOB, [R.APPROVER, R.DRIVER], [R.OBSERVER]))
    room = given(opened(), joined(bob, R.APPROVER, R.DRIVER), demoted)
    room = given(*([left(BOB)] if gone else []), room=room)

    facts = when(room, bob, joins(BOB, R.APPROVER, R.ADMIN, caps=(C.APPROVE,)))

    assert granted(facts) == ({R.OBSERVER}, set())
    assert after(room, facts).members["bob"].settled


@proves("OPEN-34")
@pytest.mark.parametrize("gone", [False, True])
def test_roles_that_the_room_gave_are_there_after_joining_again(gone: bool) -> None:
    promoted = step(ALICE, changes_roles(ALICE, BOB, [R.DRIVER], [R.ADMIN]))
    room = given(opened(), joined(BOB, R.DRIVER), promoted, *([left(BOB)] if gone else []))

    facts = when(room, holding(BOB, R.DRIVER), joins(BOB, R.DRIVER))

    assert granted(facts) == ({R.ADMIN}, set())


def test_roles_from_a_credential_are_asked_for_anew() -> None:
    room = given(opened(), joined(BOB, R.APPROVER, capabilities=(C.FORK,)))

    facts = when(room, holding(BOB, R.DRIVER), joins(BOB, R.DRIVER))

    assert granted(facts) == ({R.DRIVER}, set())


@proves("OPEN-34")
def test_the_last_admin_may_leave_and_is_admin_again_on_return() -> None:
    room = given(opened(by=ALICE), joined(BOB, R.DRIVER), left(ALICE))
    assert all(R.ADMIN not in member.roles for member in room.members.values())

    facts = when(room, holding(ALICE, R.DRIVER), joins(ALICE, R.DRIVER))

    assert granted(facts) == ({R.ADMIN, R.DRIVER}, set())


@proves("OPEN-29", "UNI-2", "UNI-22")
def test_joining_again_makes_no_second_member_and_everybody_is_there() -> None:
    room = given(
        opened(), joined(BOB, R.DRIVER), now(BOB, Presence.DISCONNECTED, at=after_seconds(1))
    )

    room = given(joined(BOB, R.DRIVER, at=after_seconds(2)), room=room)

    assert list(room.members) == ["alice", "bob"]
    assert room.members["bob"].presence is Presence.ACTIVE
    assert room.members["bob"].since == after_seconds(2)


@proves("OPEN-36")
def test_the_way_somebody_came_does_not_tell_two_joins_apart() -> None:
    join = joins(BOB, R.DRIVER)
    by_post = msgspec.structs.replace(announces(BOB, R.DRIVER), transport="http")
    said = SessionJoin(participant=by_post, supported_versions=(1,))

    assert join.repeats(said)
    assert not joins(BOB, R.OBSERVER).repeats(said)
    assert not join.repeats(SessionLeave())


# Leaving


@proves("PVP-6.4-2", "PVP-6.4-1")
def test_who_leaves_is_gone_and_the_room_hears_why() -> None:
    room = given(opened(), joined(BOB, R.DRIVER))

    facts = when(room, BOB, SessionLeave(reason="Lunch"))
    room = after(room, facts)

    assert facts == [Left(said=SessionLeave(reason="Lunch"), seat="bob")]
    assert facts.records[0].to is None
    assert list(room.members) == ["alice"]
    assert list(room.former) == ["bob"]


def test_who_left_keeps_the_place_at_which_they_went() -> None:
    room = given(opened(), joined(BOB, R.DRIVER))

    facts = when(room, BOB, SessionLeave(), at=after_seconds(9))
    (record,) = facts.records

    former = after(room, facts).former["bob"]
    assert (former.since, former.left) == (after_seconds(9), record.version)


def with_an_agent_at_work() -> Room:
    """Claude answers, waits for one tool and runs another; so does Codex."""
    script = [opened(), joined(BOB, R.APPROVER)]
    for agent in (CLAUDE, CODEX):
        prompt, asked, run = (f"{agent.seat}-{thing}" for thing in ("prompt", "asked", "run"))
        script += [
            joined(agent, R.DRIVER),
            step(ALICE, prompts(agent), id=prompt),
            step(agent, ResponseStart(agent.seat, prompt), id=f"{agent.seat}-answer"),
            step(agent, proposes(agent), id=asked),
            step(agent, proposes(agent, category=Category.FILE_READ), id=run),
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
    assert isinstance(facts[-1], Left)
    assert list(after(room, facts).streams) == ["codex-answer"]


def test_the_gates_of_who_leaves_are_closed_by_the_server() -> None:
    room = with_an_agent_at_work()
    gate = gate_on(room, "claude-asked").id

    facts = when(room, CLAUDE, SessionLeave())
    closed = [record for record in facts.records if isinstance(record.event, Rejected)]

    assert [(record.sender, record.ref) for record in closed] == [("system", gate)]
    assert [said.body.related_to for said in says(facts)] == ["claude-asked"]  # type: ignore[union-attr]
    assert list(after(room, facts).gates) == [gate_on(room, "codex-asked").id]


def test_the_tools_of_who_leaves_are_abandoned() -> None:
    room = with_an_agent_at_work()

    room = after(room, when(room, CLAUDE, SessionLeave()))

    assert list(room.tools) == ["codex-asked", "codex-run"]
    assert room.past["claude-asked"] == "rejected"
    assert room.past["claude-run"] == "abandoned"


@proves("OPEN-17")
def test_the_vote_of_who_leaves_stays_and_the_place_of_who_had_none_goes() -> None:
    room = given(
        opened(default_gate_quorum=Everyone()),
        *(joined(who, R.APPROVER) for who in (BOB, CAROL)),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
    )
    gate = gate_on(room, "p").id
    room = given(step(BOB, approves(BOB, gate)), left(BOB), left(CAROL), room=room)

    ballot = gate_on(room, "p").ballot

    assert ballot.yes == {"bob"}
    assert ballot.roll == {"alice", "bob"}
    assert kinds(when(room, ALICE, rejects(ALICE, gate)))[0] is Rejected
