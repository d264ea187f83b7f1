"""Evolving accepts every fact: a log may surprise us and still folds."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.kernel.authority import Role
from accord.core.kernel.log import Event, Record, fold
from accord.core.people.tokens import TokenRevoked
from accord.core.room import CONTEXT, EVOLVE
from accord.core.room.state import Presence, Room
from accord.core.room.streams import ResponseStart
from tests.core.dialects.wire import QUICK, records
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    given,
    joined,
    left,
    now,
    opened,
    prompts,
    proposes,
    step,
)

NOWHERE = CONTEXT.start("room/r")
SOMEWHERE = given(
    opened(),
    joined(BOB, Role.APPROVER),
    joined(CLAUDE, Role.DRIVER),
    step(ALICE, prompts(), id="prompt"),
    step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
    step(CLAUDE, proposes(), id="p"),
    now(BOB, Presence.AWAY),
    left(BOB),
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
