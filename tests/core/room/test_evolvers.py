"""Evolving accepts every fact: a log may surprise us and still folds."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.kernel.context import fold
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Role
from accord.core.people.tokens import TokenRevoked
from accord.core.room import CONTEXT, EVOLVE
from accord.core.room.conversation.responses import ResponseStart
from accord.core.room.state import Presence, Room
from tests.core.dialects.envelopes import QUICK, records
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    create_step,
    given,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    script_step,
    tool_propose,
)

NOWHERE = CONTEXT.initial_state("room/r")
SOMEWHERE = given(
    create_step(),
    join_step(BOB, Role.APPROVER),
    join_step(CLAUDE, Role.DRIVER),
    script_step(ALICE, prompt_submit(), id="prompt"),
    script_step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
    script_step(CLAUDE, tool_propose(), id="p"),
    presence_step(BOB, Presence.AWAY),
    leave_step(BOB),
)


@pytest.mark.parametrize("event", EVOLVE, ids=lambda event: event.name)
@pytest.mark.parametrize("room", [NOWHERE, SOMEWHERE], ids=["nowhere", "somewhere"])
@QUICK
@for_all(st.data())
def test_any_event_folds_into_any_room(event: type[Event], room: Room, data: st.DataObject) -> None:
    record = data.draw(records(event))

    assert isinstance(fold(CONTEXT, room, [record]), Room)


@QUICK
@for_all(records(TokenRevoked))
def test_an_event_of_another_context_passes_by(record: Record) -> None:
    assert fold(CONTEXT, SOMEWHERE, [record]) is SOMEWHERE
