"""Gates while people come, go, rise, fall and fall silent (OPEN-17, OPEN-18)."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import (
    AllOf,
    AnyOf,
    Everyone,
    Majority,
    Named,
    OfLabel,
    OfRole,
    Quorum,
)
from accord.core.kernel.effects import Relay
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.approval.votes import GatePassed, GateRejected
from accord.core.room.deadlines import due_instants
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.state import Presence, Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    DAVE,
    DEFAULT_POLICY,
    Step,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    given,
    has_grant,
    has_open_gate,
    join_step,
    leave_step,
    presence_step,
    role_change,
    script_step,
    seconds_after_start,
    session_config_update,
    tick_at,
    tool_approve,
    tool_propose,
    tool_reject,
    types_of,
    when,
)
from tests.spec import proves


def asking(quorum: Quorum, *script: Step, **config: Any) -> Room:
    """Alice is admin, Bob and Carol approve; Claude has proposed `p` under this quorum."""
    return given(
        create_step(by=ALICE, default_gate_quorum=quorum, **config),
        join_step(BOB, Role.APPROVER),
        join_step(CAROL, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        *script,
    )


def yes(who: Actor) -> Step:
    return script_step(who, gate_approve(who, "p"))


def roles(who: Actor, old: Role, *new: Role) -> Step:
    return script_step(ALICE, role_change(ALICE, who, [old], new))


# Coming


@proves("OPEN-17", "PVP-14.2-2")
def test_all_counts_the_voters_present_when_the_gate_opened() -> None:
    room = asking(Everyone(), join_step(DAVE, Role.APPROVER), yes(ALICE), yes(DAVE), yes(BOB))

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(CAROL), room=room), "p")


@proves("OPEN-17", "PVP-14.2-5")
def test_majority_counts_the_voters_present_when_the_gate_opened() -> None:
    room = asking(Majority(), join_step(DAVE, Role.APPROVER), yes(ALICE), yes(DAVE))

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_member_who_joined_later_may_reject() -> None:
    room = asking(Everyone(), join_step(DAVE, Role.APPROVER))

    assert [GateRejected, Relay] == types_of(when(room, DAVE, gate_reject(DAVE, "p")))


@proves("OPEN-17")
@pytest.mark.parametrize("quorum", [AnyOf(2), OfRole(Role.APPROVER, 2)])
def test_any_and_role_count_members_who_joined_later(quorum: Quorum) -> None:
    assert has_grant(asking(quorum, join_step(DAVE, Role.APPROVER), yes(DAVE), yes(BOB)), "p")


@proves("OPEN-17", "OPEN-15")
@pytest.mark.parametrize("quorum", [Everyone(), Majority()])
def test_electorate_is_fixed_when_the_first_voter_joins(quorum: Quorum) -> None:
    room = given(
        create_step(by=CLAUDE, default_gate_quorum=quorum),
        script_step(CLAUDE, tool_propose(), id="p"),
        join_step(ALICE, Role.DRIVER),
        join_step(BOB, Role.APPROVER),
        join_step(CAROL, Role.APPROVER),
    )

    assert has_open_gate(given(yes(CAROL), room=room), "p")
    assert has_grant(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_electorate_is_fixed_when_the_first_member_gains_the_permission() -> None:
    room = given(
        create_step(by=ALICE, default_gate_quorum=Everyone()),
        join_step(BOB, Role.DRIVER),
        join_step(CLAUDE, Role.ADMIN),
        script_step(ALICE, role_change(ALICE, ALICE, [Role.ADMIN], [Role.DRIVER])),
        script_step(CLAUDE, tool_propose(), id="p"),
        join_step(BOB, Role.NAVIGATOR),
        join_step(CAROL, Role.NAVIGATOR),
    )

    assert gate_on(room, "p").ballot.roll == {"bob"}
    assert has_grant(given(yes(BOB), room=room), "p")


# Going


@proves("OPEN-17")
@pytest.mark.parametrize("quorum", [Everyone(), AnyOf(3), OfRole(Role.APPROVER, 2), Majority()])
def test_a_leaver_who_approved_stays_counted(quorum: Quorum) -> None:
    room = asking(quorum, yes(BOB), leave_step(BOB))
    assert has_open_gate(room, "p")

    room = given(yes(CAROL), room=room)
    room = given(yes(ALICE), room=room) if has_open_gate(room, "p") else room

    assert has_grant(room, "p")


@proves("OPEN-17")
def test_a_leaver_who_had_not_voted_is_not_waited_for() -> None:
    room = asking(Everyone(), leave_step(CAROL), yes(ALICE))

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
@pytest.mark.parametrize("quorum", [Everyone(), Majority()])
def test_shrinking_alone_never_passes_a_gate(quorum: Quorum) -> None:
    room = asking(quorum, yes(ALICE), leave_step(BOB), leave_step(CAROL))

    assert has_open_gate(room, "p")
    assert has_open_gate(
        given(*(presence_step(ALICE, status) for status in Presence), room=room), "p"
    )


@proves("OPEN-17", "OPEN-24")
def test_a_repeated_approval_is_the_fresh_act_that_passes_a_shrunken_gate() -> None:
    room = asking(Everyone(), yes(ALICE), leave_step(BOB), leave_step(CAROL))

    assert has_grant(given(yes(ALICE), room=room), "p")


@proves("OPEN-17")
def test_whoever_comes_back_is_not_waited_for_again() -> None:
    room = asking(
        Everyone(), leave_step(CAROL), join_step(CAROL, Role.APPROVER), yes(CAROL), yes(ALICE)
    )

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(BOB), room=room), "p")


@proves("OPEN-17", "OPEN-15")
def test_gate_never_passes_once_its_electorate_is_empty() -> None:
    room = given(
        create_step(by=ALICE, default_gate_quorum=Everyone()),
        join_step(CLAUDE, Role.ADMIN),
        script_step(CLAUDE, tool_propose(), id="p"),
        leave_step(ALICE),
        join_step(BOB, Role.APPROVER),
        yes(BOB),
        join_step(ALICE, Role.APPROVER),
        yes(ALICE),
    )

    assert has_open_gate(room, "p")


@proves("OPEN-17", "PVP-14.2-4")
def test_a_named_approver_who_left_blocks_until_the_return() -> None:
    room = asking(Named(("bob", "carol")), leave_step(BOB), yes(CAROL), yes(ALICE))

    assert has_open_gate(room, "p")
    assert has_grant(given(join_step(BOB, Role.APPROVER), yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_a_named_approver_who_approved_and_left_does_not_block() -> None:
    assert has_grant(asking(Named(("bob", "carol")), yes(BOB), leave_step(BOB), yes(CAROL)), "p")


@proves("OPEN-17")
def test_an_approval_survives_leaving_and_coming_back() -> None:
    room = asking(AnyOf(2), yes(BOB), leave_step(BOB), join_step(BOB, Role.APPROVER), yes(CAROL))

    assert has_grant(room, "p")


@proves("OPEN-17")
def test_rejoining_with_fewer_rights_withdraws_the_approval() -> None:
    room = asking(AnyOf(2), yes(BOB), leave_step(BOB), join_step(BOB, Role.OBSERVER), yes(CAROL))

    assert has_open_gate(room, "p")
    assert gate_on(room, "p").ballot.yes == {"carol"}


# Rising and falling


@proves("OPEN-17")
def test_a_demotion_takes_the_approval_away() -> None:
    room = asking(AnyOf(2), yes(BOB), roles(BOB, Role.APPROVER, Role.DRIVER), yes(CAROL))

    assert has_open_gate(room, "p")


@proves("OPEN-17")
def test_a_demotion_takes_the_place_in_the_set_away() -> None:
    room = asking(Everyone(), yes(ALICE), yes(CAROL), roles(BOB, Role.APPROVER, Role.DRIVER))

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(ALICE), room=room), "p")


@proves("OPEN-17")
def test_a_promotion_after_a_demotion_needs_a_fresh_vote_and_gives_no_place() -> None:
    fall_and_rise = (
        yes(BOB),
        roles(BOB, Role.APPROVER, Role.OBSERVER),
        roles(BOB, Role.OBSERVER, Role.APPROVER),
    )
    anybody = asking(AnyOf(2), *fall_and_rise, yes(CAROL))
    everybody = asking(Everyone(), *fall_and_rise, yes(CAROL), yes(ALICE))

    assert has_open_gate(anybody, "p")
    assert has_grant(given(yes(BOB), room=anybody), "p")
    assert has_grant(everybody, "p")


@proves("OPEN-17")
def test_who_loses_the_role_that_is_asked_for_loses_the_vote() -> None:
    room = asking(
        OfRole(Role.APPROVER, 2),
        yes(BOB),
        roles(BOB, Role.APPROVER, Role.NAVIGATOR),
        yes(CAROL),
    )

    assert has_open_gate(room, "p")
    assert gate_on(room, "p").ballot.yes == {"carol"}


@proves("OPEN-17")
def test_a_role_regained_needs_a_fresh_vote() -> None:
    room = asking(
        OfRole(Role.APPROVER, 2),
        yes(BOB),
        roles(BOB, Role.APPROVER, Role.NAVIGATOR),
        roles(BOB, Role.NAVIGATOR, Role.APPROVER),
        yes(CAROL),
    )

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_losing_a_role_outside_the_quorum_keeps_the_vote() -> None:
    room = asking(AnyOf(2), yes(BOB), roles(BOB, Role.APPROVER, Role.NAVIGATOR), yes(CAROL))

    assert has_grant(room, "p")


@proves("OPEN-17", "OPEN-9")
def test_a_role_change_takes_the_capability_and_the_vote_with_it() -> None:
    room = asking(
        AnyOf(2),
        join_step(DAVE, Role.DRIVER, capabilities=(Capability.APPROVE,)),
        yes(DAVE),
        roles(DAVE, Role.DRIVER, Role.DRIVER),
        yes(BOB),
    )

    assert has_open_gate(room, "p")


@proves("OPEN-17")
def test_a_label_lost_takes_the_vote_with_it_for_good() -> None:
    room = asking(
        AllOf((OfLabel("security", 1), AnyOf(2))),
        join_step(DAVE, Role.NAVIGATOR, labels=("security",)),
        yes(DAVE),
        leave_step(DAVE),
        join_step(DAVE, Role.NAVIGATOR),
        join_step(DAVE, Role.NAVIGATOR, labels=("security",)),
        yes(BOB),
    )

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(DAVE), room=room), "p")


def test_one_person_satisfies_several_rules_and_the_server_knows_how_few_it_takes() -> None:
    both = AllOf((OfLabel("security", 1), OfRole(Role.NAVIGATOR, 1), AnyOf(1)))
    room = given(
        create_step(by=ALICE, default_gate_quorum=both),
        join_step(DAVE, Role.NAVIGATOR, labels=("security",)),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        yes(ALICE),
    )

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(DAVE), room=room), "p")


# Falling silent


@proves("OPEN-17", "OPEN-18")
@pytest.mark.parametrize("absence", [Presence.AWAY, Presence.DISCONNECTED])
def test_by_default_the_absent_are_waited_for(absence: Presence) -> None:
    room = asking(Everyone(), presence_step(CAROL, absence), yes(ALICE), yes(BOB))

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(CAROL), room=room), "p")


@proves("OPEN-18", "OPEN-17")
@pytest.mark.parametrize("absence", [Presence.AWAY, Presence.DISCONNECTED])
def test_skip_does_not_wait_for_the_absent(absence: Presence) -> None:
    skip = AbsencePolicy.SKIP
    room = asking(Everyone(), yes(ALICE), on_participant_timeout=skip)
    room = given(presence_step(CAROL, absence), room=room)

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(BOB), room=room), "p")


@proves("OPEN-18", "OPEN-17")
def test_skip_passes_nothing_by_itself() -> None:
    room = asking(Everyone(), yes(ALICE), on_participant_timeout=AbsencePolicy.SKIP)
    room = given(
        presence_step(BOB, Presence.AWAY), presence_step(CAROL, Presence.DISCONNECTED), room=room
    )

    assert has_open_gate(room, "p")
    assert has_grant(given(yes(ALICE), room=room), "p")


@proves("OPEN-18")
def test_skip_still_waits_for_idle_and_returned_members() -> None:
    room = asking(Everyone(), on_participant_timeout=AbsencePolicy.SKIP)
    idle = given(presence_step(CAROL, Presence.IDLE), yes(ALICE), yes(BOB), room=room)
    back = given(
        presence_step(CAROL, Presence.AWAY),
        presence_step(CAROL, Presence.ACTIVE),
        yes(ALICE),
        yes(BOB),
        room=room,
    )

    assert has_open_gate(idle, "p")
    assert has_open_gate(back, "p")


@proves("OPEN-18", "OPEN-15")
def test_skip_with_everybody_absent_still_needs_all_of_them() -> None:
    room = asking(Everyone(), on_participant_timeout=AbsencePolicy.SKIP)
    absent = [presence_step(who, Presence.AWAY) for who in (ALICE, BOB, CAROL)]
    room = given(*absent, join_step(DAVE, Role.APPROVER), yes(DAVE), room=room)

    assert has_open_gate(room, "p")
    assert gate_on(room, "p").ballot.roll == {"alice", "bob", "carol"}


@proves("OPEN-18")
def test_skip_keeps_the_vote_of_whoever_voted_and_went() -> None:
    room = asking(Majority(), yes(CAROL), on_participant_timeout=AbsencePolicy.SKIP)
    room = given(presence_step(CAROL, Presence.AWAY), yes(BOB), room=room)

    assert has_grant(room, "p")


# Pausing


@proves("OPEN-18")
def test_a_pause_stops_the_clock_of_a_gate() -> None:
    room = asking(AnyOf(1), on_participant_timeout=AbsencePolicy.PAUSE_SESSION)
    paused = given(presence_step(CAROL, Presence.AWAY, at=seconds_after_start(100)), room=room)

    assert tick_at(paused, seconds_after_start(1000)) == []
    assert list(due_instants(paused, DEFAULT_POLICY)) == []
    resumed = given(
        presence_step(CAROL, Presence.ACTIVE, at=seconds_after_start(1000)), room=paused
    )
    assert gate_on(resumed, "p").expires_at == seconds_after_start(1200)
    assert tick_at(resumed, seconds_after_start(1199)) == []
    assert tick_at(resumed, seconds_after_start(1200)) != []


@proves("OPEN-18")
def test_people_vote_on_in_a_paused_room_and_agents_wait() -> None:
    room = asking(AnyOf(1), on_participant_timeout=AbsencePolicy.PAUSE_SESSION)
    room = given(presence_step(CAROL, Presence.AWAY), room=room)

    assert GatePassed in types_of(when(room, BOB, gate_approve(BOB, "p")))
    assert GateRejected in types_of(when(room, BOB, gate_reject(BOB, "p")))
    assert GatePassed in types_of(when(room, BOB, tool_approve(BOB, "p")))
    assert GateRejected in types_of(when(room, BOB, tool_reject(BOB, "p")))
    with expect_refusal(Reason.WRONG_STATE, "paused"):
        when(room, CLAUDE, tool_propose())


@proves("OPEN-18")
def test_an_absent_observer_or_agent_without_a_part_pauses_nothing() -> None:
    room = asking(
        AnyOf(1),
        join_step(DAVE, Role.OBSERVER),
        join_step(CODEX, Role.OBSERVER),
        presence_step(DAVE, Presence.AWAY),
        presence_step(CODEX, Presence.DISCONNECTED),
        on_participant_timeout=AbsencePolicy.PAUSE_SESSION,
    )

    assert room.paused_at is None


@proves("OPEN-18")
def test_an_admin_ends_a_pause_by_changing_the_policy() -> None:
    room = asking(AnyOf(1), on_participant_timeout=AbsencePolicy.PAUSE_SESSION)
    room = given(
        presence_step(CAROL, Presence.AWAY, at=seconds_after_start(10)),
        script_step(
            ALICE, session_config_update(on_participant_timeout="wait"), at=seconds_after_start(60)
        ),
        room=room,
    )

    assert room.paused_at is None
    assert gate_on(room, "p").expires_at == seconds_after_start(350)
