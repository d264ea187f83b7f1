"""Gates while people come, go, rise, fall and fall silent (OPEN-17, OPEN-18)."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Capability, Role
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
from accord.core.kernel.log import Say
from accord.core.kernel.refusal import Why
from accord.core.room import deadlines
from accord.core.room.state import OnTimeout, Presence, Room
from accord.core.room.votes import GatePassed, Rejected
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    DAVE,
    HOUSE,
    Step,
    after_seconds,
    approves,
    approves_tool,
    changes_roles,
    configures,
    gate_on,
    given,
    joined,
    kinds,
    left,
    may_run,
    now,
    opened,
    proposes,
    refused,
    rejects,
    rejects_tool,
    step,
    ticks,
    waits,
    when,
)
from tests.spec import proves


def asking(quorum: Quorum, *script: Step, **config: Any) -> Room:
    """Alice is admin, Bob and Carol approve; Claude has proposed `p` under this quorum."""
    return given(
        opened(by=ALICE, default_gate_quorum=quorum, **config),
        joined(BOB, Role.APPROVER),
        joined(CAROL, Role.APPROVER),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        *script,
    )


def yes(who: Actor) -> Step:
    return step(who, approves(who, "p"))


def roles(who: Actor, old: Role, *new: Role) -> Step:
    return step(ALICE, changes_roles(ALICE, who, [old], new))


# Coming


@proves("OPEN-17", "PVP-14.2-2")
def test_all_means_those_who_were_there_at_the_start() -> None:
    room = asking(Everyone(), joined(DAVE, Role.APPROVER), yes(ALICE), yes(DAVE), yes(BOB))

    assert waits(room, "p")
    assert may_run(given(yes(CAROL), room=room), "p")


@proves("OPEN-17", "PVP-14.2-5")
def test_a_majority_is_of_those_who_were_there_at_the_start() -> None:
    room = asking(Majority(), joined(DAVE, Role.APPROVER), yes(ALICE), yes(DAVE))

    assert waits(room, "p")
    assert may_run(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_who_came_late_may_still_reject() -> None:
    room = asking(Everyone(), joined(DAVE, Role.APPROVER))

    assert [Rejected, Say] == kinds(when(room, DAVE, rejects(DAVE, "p")))


@proves("OPEN-17")
@pytest.mark.parametrize("quorum", [AnyOf(2), OfRole(Role.APPROVER, 2)])
def test_any_and_role_count_who_came_late(quorum: Quorum) -> None:
    assert may_run(asking(quorum, joined(DAVE, Role.APPROVER), yes(DAVE), yes(BOB)), "p")


@proves("OPEN-17", "OPEN-15")
@pytest.mark.parametrize("quorum", [Everyone(), Majority()])
def test_where_nobody_was_there_the_first_who_comes_is_all(quorum: Quorum) -> None:
    room = given(
        opened(by=CLAUDE, default_gate_quorum=quorum),
        step(CLAUDE, proposes(), id="p"),
        joined(ALICE, Role.DRIVER),
        joined(BOB, Role.APPROVER),
        joined(CAROL, Role.APPROVER),
    )

    assert waits(given(yes(CAROL), room=room), "p")
    assert may_run(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_who_gains_the_right_first_is_all_too() -> None:
    room = given(
        opened(by=ALICE, default_gate_quorum=Everyone()),
        joined(BOB, Role.DRIVER),
        joined(CLAUDE, Role.ADMIN),
        step(ALICE, changes_roles(ALICE, ALICE, [Role.ADMIN], [Role.DRIVER])),
        step(CLAUDE, proposes(), id="p"),
        joined(BOB, Role.NAVIGATOR),
        joined(CAROL, Role.NAVIGATOR),
    )

    assert gate_on(room, "p").ballot.roll == {"bob"}
    assert may_run(given(yes(BOB), room=room), "p")


# Going


@proves("OPEN-17")
@pytest.mark.parametrize("quorum", [Everyone(), AnyOf(3), OfRole(Role.APPROVER, 2), Majority()])
def test_a_leaver_who_approved_stays_counted(quorum: Quorum) -> None:
    room = asking(quorum, yes(BOB), left(BOB))
    assert waits(room, "p")

    room = given(yes(CAROL), room=room)
    room = given(yes(ALICE), room=room) if waits(room, "p") else room

    assert may_run(room, "p")


@proves("OPEN-17")
def test_a_leaver_who_had_not_voted_is_not_waited_for() -> None:
    room = asking(Everyone(), left(CAROL), yes(ALICE))

    assert waits(room, "p")
    assert may_run(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
@pytest.mark.parametrize("quorum", [Everyone(), Majority()])
def test_shrinking_alone_never_passes_a_gate(quorum: Quorum) -> None:
    room = asking(quorum, yes(ALICE), left(BOB), left(CAROL))

    assert waits(room, "p")
    assert waits(given(*(now(ALICE, status) for status in Presence), room=room), "p")


@proves("OPEN-17", "OPEN-24")
def test_a_repeated_approval_is_the_fresh_act_that_passes_a_shrunken_gate() -> None:
    room = asking(Everyone(), yes(ALICE), left(BOB), left(CAROL))

    assert may_run(given(yes(ALICE), room=room), "p")


@proves("OPEN-17")
def test_whoever_comes_back_is_not_waited_for_again() -> None:
    room = asking(Everyone(), left(CAROL), joined(CAROL, Role.APPROVER), yes(CAROL), yes(ALICE))

    assert waits(room, "p")
    assert may_run(given(yes(BOB), room=room), "p")


@proves("OPEN-17", "OPEN-15")
def test_a_set_that_everybody_left_is_never_met() -> None:
    room = given(
        opened(by=ALICE, default_gate_quorum=Everyone()),
        joined(CLAUDE, Role.ADMIN),
        step(CLAUDE, proposes(), id="p"),
        left(ALICE),
        joined(BOB, Role.APPROVER),
        yes(BOB),
        joined(ALICE, Role.APPROVER),
        yes(ALICE),
    )

    assert waits(room, "p")


@proves("OPEN-17", "PVP-14.2-4")
def test_a_named_approver_who_left_blocks_until_the_return() -> None:
    room = asking(Named(("bob", "carol")), left(BOB), yes(CAROL), yes(ALICE))

    assert waits(room, "p")
    assert may_run(given(joined(BOB, Role.APPROVER), yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_a_named_approver_who_approved_and_left_does_not_block() -> None:
    assert may_run(asking(Named(("bob", "carol")), yes(BOB), left(BOB), yes(CAROL)), "p")


@proves("OPEN-17")
def test_an_approval_survives_leaving_and_coming_back() -> None:
    room = asking(AnyOf(2), yes(BOB), left(BOB), joined(BOB, Role.APPROVER), yes(CAROL))

    assert may_run(room, "p")


@proves("OPEN-17")
def test_whoever_comes_back_with_less_has_approved_nothing() -> None:
    room = asking(AnyOf(2), yes(BOB), left(BOB), joined(BOB, Role.OBSERVER), yes(CAROL))

    assert waits(room, "p")
    assert gate_on(room, "p").ballot.yes == {"carol"}


# Rising and falling


@proves("OPEN-17")
def test_a_demotion_takes_the_approval_away() -> None:
    room = asking(AnyOf(2), yes(BOB), roles(BOB, Role.APPROVER, Role.DRIVER), yes(CAROL))

    assert waits(room, "p")


@proves("OPEN-17")
def test_a_demotion_takes_the_place_in_the_set_away() -> None:
    room = asking(Everyone(), yes(ALICE), yes(CAROL), roles(BOB, Role.APPROVER, Role.DRIVER))

    assert waits(room, "p")
    assert may_run(given(yes(ALICE), room=room), "p")


@proves("OPEN-17")
def test_a_promotion_after_a_demotion_needs_a_fresh_vote_and_gives_no_place() -> None:
    fall_and_rise = (
        yes(BOB),
        roles(BOB, Role.APPROVER, Role.OBSERVER),
        roles(BOB, Role.OBSERVER, Role.APPROVER),
    )
    anybody = asking(AnyOf(2), *fall_and_rise, yes(CAROL))
    everybody = asking(Everyone(), *fall_and_rise, yes(CAROL), yes(ALICE))

    assert waits(anybody, "p")
    assert may_run(given(yes(BOB), room=anybody), "p")
    assert may_run(everybody, "p")


@proves("OPEN-17")
def test_who_loses_the_role_that_is_asked_for_loses_the_vote() -> None:
    room = asking(
        OfRole(Role.APPROVER, 2),
        yes(BOB),
        roles(BOB, Role.APPROVER, Role.NAVIGATOR),
        yes(CAROL),
    )

    assert waits(room, "p")
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

    assert waits(room, "p")
    assert may_run(given(yes(BOB), room=room), "p")


@proves("OPEN-17")
def test_another_role_that_nobody_asks_for_may_go() -> None:
    room = asking(AnyOf(2), yes(BOB), roles(BOB, Role.APPROVER, Role.NAVIGATOR), yes(CAROL))

    assert may_run(room, "p")


@proves("OPEN-17", "OPEN-9")
def test_a_role_change_takes_the_capability_and_the_vote_with_it() -> None:
    room = asking(
        AnyOf(2),
        joined(DAVE, Role.DRIVER, capabilities=(Capability.APPROVE,)),
        yes(DAVE),
        roles(DAVE, Role.DRIVER, Role.DRIVER),
        yes(BOB),
    )

    assert waits(room, "p")


@proves("OPEN-17")
def test_a_label_lost_takes_the_vote_with_it_for_good() -> None:
    room = asking(
        AllOf((OfLabel("security", 1), AnyOf(2))),
        joined(DAVE, Role.NAVIGATOR, labels=("security",)),
        yes(DAVE),
        left(DAVE),
        joined(DAVE, Role.NAVIGATOR),
        joined(DAVE, Role.NAVIGATOR, labels=("security",)),
        yes(BOB),
    )

    assert waits(room, "p")
    assert may_run(given(yes(DAVE), room=room), "p")


def test_one_person_satisfies_several_rules_and_the_server_knows_how_few_it_takes() -> None:
    both = AllOf((OfLabel("security", 1), OfRole(Role.NAVIGATOR, 1), AnyOf(1)))
    room = given(
        opened(by=ALICE, default_gate_quorum=both),
        joined(DAVE, Role.NAVIGATOR, labels=("security",)),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        yes(ALICE),
    )

    assert waits(room, "p")
    assert may_run(given(yes(DAVE), room=room), "p")


# Falling silent


@proves("OPEN-17", "OPEN-18")
@pytest.mark.parametrize("absence", [Presence.AWAY, Presence.DISCONNECTED])
def test_by_default_the_absent_are_waited_for(absence: Presence) -> None:
    room = asking(Everyone(), now(CAROL, absence), yes(ALICE), yes(BOB))

    assert waits(room, "p")
    assert may_run(given(yes(CAROL), room=room), "p")


@proves("OPEN-18", "OPEN-17")
@pytest.mark.parametrize("absence", [Presence.AWAY, Presence.DISCONNECTED])
def test_skip_does_not_wait_for_the_absent(absence: Presence) -> None:
    skip = OnTimeout.SKIP
    room = asking(Everyone(), yes(ALICE), on_participant_timeout=skip)
    room = given(now(CAROL, absence), room=room)

    assert waits(room, "p")
    assert may_run(given(yes(BOB), room=room), "p")


@proves("OPEN-18", "OPEN-17")
def test_skip_passes_nothing_by_itself() -> None:
    room = asking(Everyone(), yes(ALICE), on_participant_timeout=OnTimeout.SKIP)
    room = given(now(BOB, Presence.AWAY), now(CAROL, Presence.DISCONNECTED), room=room)

    assert waits(room, "p")
    assert may_run(given(yes(ALICE), room=room), "p")


@proves("OPEN-18")
def test_skip_waits_for_whoever_is_merely_idle_or_has_come_back() -> None:
    room = asking(Everyone(), on_participant_timeout=OnTimeout.SKIP)
    idle = given(now(CAROL, Presence.IDLE), yes(ALICE), yes(BOB), room=room)
    back = given(
        now(CAROL, Presence.AWAY), now(CAROL, Presence.ACTIVE), yes(ALICE), yes(BOB), room=room
    )

    assert waits(idle, "p")
    assert waits(back, "p")


@proves("OPEN-18", "OPEN-15")
def test_skip_with_everybody_absent_still_needs_all_of_them() -> None:
    room = asking(Everyone(), on_participant_timeout=OnTimeout.SKIP)
    absent = [now(who, Presence.AWAY) for who in (ALICE, BOB, CAROL)]
    room = given(*absent, joined(DAVE, Role.APPROVER), yes(DAVE), room=room)

    assert waits(room, "p")
    assert gate_on(room, "p").ballot.roll == {"alice", "bob", "carol"}


@proves("OPEN-18")
def test_skip_keeps_the_vote_of_whoever_voted_and_went() -> None:
    room = asking(Majority(), yes(CAROL), on_participant_timeout=OnTimeout.SKIP)
    room = given(now(CAROL, Presence.AWAY), yes(BOB), room=room)

    assert may_run(room, "p")


# Pausing


@proves("OPEN-18")
def test_a_pause_stops_the_clock_of_a_gate() -> None:
    room = asking(AnyOf(1), on_participant_timeout=OnTimeout.PAUSE_SESSION)
    paused = given(now(CAROL, Presence.AWAY, at=after_seconds(100)), room=room)

    assert ticks(paused, after_seconds(1000)) == []
    assert list(deadlines(paused, HOUSE)) == []
    resumed = given(now(CAROL, Presence.ACTIVE, at=after_seconds(1000)), room=paused)
    assert gate_on(resumed, "p").expires_at == after_seconds(1200)
    assert ticks(resumed, after_seconds(1199)) == []
    assert ticks(resumed, after_seconds(1200)) != []


@proves("OPEN-18")
def test_people_vote_on_in_a_paused_room_and_agents_wait() -> None:
    room = asking(AnyOf(1), on_participant_timeout=OnTimeout.PAUSE_SESSION)
    room = given(now(CAROL, Presence.AWAY), room=room)

    assert GatePassed in kinds(when(room, BOB, approves(BOB, "p")))
    assert Rejected in kinds(when(room, BOB, rejects(BOB, "p")))
    assert GatePassed in kinds(when(room, BOB, approves_tool(BOB, "p")))
    assert Rejected in kinds(when(room, BOB, rejects_tool(BOB, "p")))
    with refused(Why.WRONG_STATE, "paused"):
        when(room, CLAUDE, proposes())


@proves("OPEN-18")
def test_an_absent_observer_or_agent_without_a_part_pauses_nothing() -> None:
    room = asking(
        AnyOf(1),
        joined(DAVE, Role.OBSERVER),
        joined(CODEX, Role.OBSERVER),
        now(DAVE, Presence.AWAY),
        now(CODEX, Presence.DISCONNECTED),
        on_participant_timeout=OnTimeout.PAUSE_SESSION,
    )

    assert room.paused_at is None


@proves("OPEN-18")
def test_an_admin_ends_a_pause_by_changing_the_policy() -> None:
    room = asking(AnyOf(1), on_participant_timeout=OnTimeout.PAUSE_SESSION)
    room = given(
        now(CAROL, Presence.AWAY, at=after_seconds(10)),
        step(ALICE, configures(on_participant_timeout="wait"), at=after_seconds(60)),
        room=room,
    )

    assert room.paused_at is None
    assert gate_on(room, "p").expires_at == after_seconds(350)
