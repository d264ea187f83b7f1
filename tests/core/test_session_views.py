"""What a reader is shown of a session."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.room.members import SessionLeave
from accord.core.room.state import OnTimeout, Presence
from accord.core.views import sessions
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    after,
    after_seconds,
    ends,
    given,
    joined,
    left,
    now,
    opened,
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
