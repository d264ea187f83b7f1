"""What a reader is shown of a session."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.views import sessions
from tests.helpers.room import ALICE, BOB, CLAUDE, after, given, joined, opened, proposes, when


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
